"""Producers that no coordinator knows are forgotten in partitions, and not before that can't be lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from faircopy.journal.entry import TransactionId
from faircopy.shard.shards import Shards
from faircopy.transactions import decisions
from faircopy.transactions.table import TransactionTable

KNOWN, UNKNOWN = TransactionId(1, 0, 5), TransactionId(2, 0, 6)


class Home:
    """A metadata journal that knows one producer, and is durable when it is told so."""

    def __init__(self) -> None:
        self.table, self.journal = TransactionTable(), self
        self.table.fold(decisions.fence("a", KNOWN.producer_id, 0, 1_000, 0), 0)
        self.synced = asyncio.Event()

    async def durable(self) -> None:
        await self.synced.wait()


class Remembering:
    """A partition that remembers how two transactions ended."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.state, self.failure = self, failure
        self.forgotten: list[int] = []

    def producers_with_transactions(self) -> set[int]:
        return {each.producer_id for each in (KNOWN, UNKNOWN)}

    def forget_producers(self, producer_ids: Iterable[int]) -> None:
        self.forgotten += producer_ids


def test_they_are_forgotten_once_that_is_durable() -> None:
    """Found by simulation: a start ended a joint commit, and had its members forgotten at once. The power was
    lost. The next start had lost the end, asked for the promises, found none, and aborted what was acked.
    """

    async def test() -> None:
        home, sound, failed = Home(), Remembering(), Remembering(OSError("the disk"))
        shards: Any = SimpleNamespace(metadata_journals=lambda: [home], partitions=lambda: [sound, failed])
        forgetting = asyncio.create_task(Shards._forget(shards, [Shards._unknown(shards)]))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not forgetting.done() and sound.forgotten == []
        home.synced.set()
        assert await forgetting == 1
        assert sound.forgotten == [UNKNOWN.producer_id]
        assert failed.forgotten == []

    asyncio.run(test())
