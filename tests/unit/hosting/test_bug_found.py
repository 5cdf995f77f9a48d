"""A fold that fails is a bug: it ends the broker at once, and nothing of it is written or answered."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest import mock

import pytest

from faircopy.broker.broker import EX_SOFTWARE, Broker
from faircopy.broker.environment import Environment
from faircopy.errors import InvariantViolation
from faircopy.settings.table import Settings
from faircopy.transactions.table import TransactionTable


class Ended(BaseException):
    """Stands for the end of the process: nothing goes on after it."""


class Ending(Environment):
    """One in which the end of the process is an exception."""

    def end_process(self, exit_code: int) -> None:
        raise Ended(exit_code)


def made(tmp_path: Path) -> Broker:
    return Broker(
        Settings(data_dir=str(tmp_path / "data"), metadata_journals=1, plain_enabled=False), Ending()
    )


def close(broker: Broker) -> None:
    """Leave everything as a killed process does."""
    broker.disk.close()
    broker.store.close()
    broker.directory.close()


async def init(broker: Broker, transactional_id: str) -> tuple[int, int]:
    coordinator = broker.shards.coordinator_of(transactional_id)
    return await coordinator.init_producer(transactional_id, 60_000, -1, -1, 1)


def test_a_bug_in_a_fold_ends_the_broker_and_no_later_start_meets_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def meet_a_bug() -> None:
        broker = made(tmp_path)
        await broker.open()
        assert (await init(broker, "orders"))[1] == 0
        with (
            mock.patch.object(TransactionTable, "_fold_fence", side_effect=InvariantViolation("I4: a bug")),
            pytest.raises(Ended) as caught,
        ):
            await init(broker, "orders")
        assert caught.value.args == (EX_SOFTWARE,)
        close(broker)

    async def go_on() -> None:
        broker = made(tmp_path)
        await broker.open()
        assert (await init(broker, "orders"))[1] == 1, "what failed has left no trace"
        close(broker)

    asyncio.run(meet_a_bug())
    assert "an entry of a journal does not fold (I4: a bug)" in caplog.text
    asyncio.run(go_on())
