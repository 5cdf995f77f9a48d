"""An older copy of a directory leads under epochs that the original has not reached."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.shard.leader_epochs import EpochIsOfTheSet, LeaderEpochs
from faircopy.shard.placement import Placement
from faircopy.storage.copied import note_copied
from faircopy.storage.epochs import (
    EPOCHS_SKIPPED,
    greatest_epoch,
    leader_epoch,
    note_leader_epochs,
    raise_incarnation,
)
from faircopy.storage.local_notes import LocalNotes

SHARDS = 3
LIVES = st.lists(st.lists(st.integers(0, SHARDS - 1), max_size=5), max_size=4)
"""Of each start, which shards were led anew."""


class MemoryNotes(LocalNotes):
    """Notes that last as long as the process."""

    def __init__(self) -> None:
        self._notes: dict[str, bytes] = {}

    def get(self, name: str) -> bytes | None:
        return self._notes.get(name)

    def scan(self, prefix: str) -> dict[str, bytes]:
        return {name: value for name, value in self._notes.items() if name.startswith(prefix)}

    async def write(self, notes: Mapping[str, bytes | None]) -> None:
        for name, value in notes.items():
            self._notes.pop(name, None)
            if value is not None:
                self._notes[name] = value


async def start(store: MemoryNotes) -> LeaderEpochs:
    epochs = LeaderEpochs(store, Placement(SHARDS, SHARDS, SHARDS), await raise_incarnation(store))
    await epochs.raise_all()
    return epochs


async def live(store: MemoryNotes, lives: list[list[int]]) -> int:
    """The greatest epoch under which anything was led."""
    greatest = 0
    for led_anew in lives:
        epochs = await start(store)
        for shard in led_anew:
            await epochs.raise_one(shard)
        greatest = max(greatest, *map(epochs.of_shard, range(SHARDS)))
    return greatest


def test_an_incarnation_is_nobody_elses() -> None:
    async def main() -> list[int]:
        store = MemoryNotes()
        return [await raise_incarnation(store) for _ in range(3)]

    assert asyncio.run(main()) == [1, 2, 3]


def test_the_epoch_of_a_shard() -> None:
    async def main() -> None:
        store = MemoryNotes()
        assert leader_epoch(store, 0) == 0
        await note_leader_epochs(store, {0: 7})
        assert leader_epoch(store, 0) == 7

    asyncio.run(main())


@given(LIVES, LIVES)
def test_a_copy_leads_under_greater_epochs(before: list[list[int]], after: list[list[int]]) -> None:
    """Whatever happened before the copy was made, and to the original since."""

    async def main() -> None:
        original, copy = MemoryNotes(), MemoryNotes()
        for store in (original, copy):
            await live(store, before)
        reached = await live(original, after)
        await note_copied(copy)
        epochs = await start(copy)
        assert min(map(epochs.of_shard, range(SHARDS))) > reached

    asyncio.run(main())


def test_shards_may_have_come_further_than_the_incarnation() -> None:
    """As they do when they are often led anew."""

    async def main() -> None:
        store = MemoryNotes()
        await live(store, [[0] * 2 * EPOCHS_SKIPPED])
        reached = leader_epoch(store, 0)
        await note_copied(store)
        epochs = await start(store)
        assert min(map(epochs.of_shard, range(SHARDS))) > reached + EPOCHS_SKIPPED

    asyncio.run(main())


def test_in_a_replica_set_all_shards_have_the_epoch_of_the_set() -> None:
    async def main() -> None:
        store = MemoryNotes()
        await live(store, [[0, 0, 1]])
        reached = greatest_epoch(store)
        assert reached == leader_epoch(store, 0) == 3
        placement = Placement(SHARDS, SHARDS, SHARDS)
        epochs = LeaderEpochs(store, placement, reached + 1, is_of_a_set=True)
        await epochs.raise_all()
        assert {epochs.of_shard(shard) for shard in range(SHARDS)} == {reached + 1}
        with pytest.raises(EpochIsOfTheSet):
            epochs.ensure_own()
        with pytest.raises(EpochIsOfTheSet):
            await epochs.raise_one(0)
        assert leader_epoch(store, 0) == reached + 1

    asyncio.run(main())
