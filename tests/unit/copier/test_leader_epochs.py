"""Batches have the leader epoch of the entry that decided them, live and in recovery."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from faircopy.copier.checkpoint import Checkpoint, decode_checkpoint, encode_checkpoint
from faircopy.datalog.check import check_up_to
from faircopy.datalog.read import DamagedLog
from faircopy.journal.entry import TransactionId
from faircopy.journal.errors import DamagedJournal
from faircopy.storage.epoch_history import Epochs
from faircopy.verify.log_files import LogFile, log_files
from tests.unit.copier.partition_bench import IDENTITY, PartitionBench, run

T1 = TransactionId(7, 0, 1)
LEADER_EPOCH_AT = 12


def epochs_in_log(bench: PartitionBench) -> list[tuple[int, int]]:
    """The leader epoch and the base offset of each batch."""
    headers = [
        batch.header for path in log_files(bench.log.directory) for batch in LogFile(path).batches(None)
    ]
    return [(header.leader_epoch, header.base_offset) for header in headers]


@pytest.mark.parametrize("is_checkpointed", [True, False])
def test_a_transaction_bears_the_epoch_of_its_decision(tmp_path: Path, is_checkpointed: bool) -> None:
    async def test(bench: PartitionBench) -> None:
        await bench.draft(T1, 0, b"a")
        await bench.plain(b"plain")
        bench.restart()
        await bench.draft(T1, 1, b"b")
        await bench.prepare(T1)
        if is_checkpointed:
            await bench.partition.checkpoint()
        bench.restart()
        await bench.apply(T1)
        assert await bench.visible() == [b"plain", b"a", b"b"]
        expected = [(1, 0), (3, 1), (3, 2)]
        assert epochs_in_log(bench) == expected
        # An epoch that decided nothing has no place in the log.
        assert bench.partition.epochs == Epochs.of([(1, 0), (3, 1)])
        bench.restart()
        assert epochs_in_log(bench) == expected
        assert bench.partition.state.epochs == Epochs.of([(1, 0), (3, 1)])
        assert bench.partition.epochs == Epochs.of([(1, 0), (3, 1), (4, 3)])

    run(tmp_path, test)


def test_the_history_is_in_the_checkpoint_and_goes_with_the_log(tmp_path: Path) -> None:
    async def test(bench: PartitionBench) -> None:
        for number in range(4):
            await bench.plain(b"%d" % number, b"more")
            bench.restart()
        await bench.plain(b"last")
        await bench.partition.checkpoint()
        bench.restart()
        full = Epochs.of([(1, 0), (2, 2), (3, 4), (4, 6), (5, 8)])
        assert bench.partition.state.epochs == full
        await bench.done(lambda done: bench.partition.trim(5, done))
        assert bench.partition.state.epochs == Epochs.of([(3, 4), (4, 6), (5, 8), (6, 9)])
        bench.restart()
        assert bench.partition.state.epochs == Epochs.of([(3, 4), (4, 6), (5, 8), (6, 9)])

    run(tmp_path, test)


def test_a_changed_epoch_is_damage(tmp_path: Path) -> None:
    """It is under no CRC: that it is not the one that the checkpoint has tells of it."""

    async def test(bench: PartitionBench) -> None:
        for number in range(3):
            await bench.plain(b"%d" % number)
            await bench.partition.checkpoint()
            bench.restart()
        (path,) = log_files(bench.log.directory)
        second = list(LogFile(path).batches(0))[1]
        data = bytearray(path.read_bytes())
        data[second.byte + LEADER_EPOCH_AT + random.randrange(4)] ^= 1 << random.randrange(8)
        path.write_bytes(data)
        plan = bench.log.plan_read(0)
        assert plan is not None
        with pytest.raises(DamagedLog, match=f"byte {second.byte}, offset 1"):
            check_up_to(plan, plan.visible_bytes)

    run(tmp_path, test)


@pytest.mark.parametrize("epoch", [1, 2])
def test_nobody_leads_under_an_epoch_that_was_led(tmp_path: Path, epoch: int) -> None:
    """The state store, which has the epochs, must be an older one."""

    async def test(bench: PartitionBench) -> None:
        bench.restart()
        await bench.plain(b"of epoch 2")
        bench.leader_epoch = epoch - 1
        with pytest.raises(
            DamagedJournal, match=f"of leader epoch 2, but the next epoch is {epoch}: the state"
        ):
            bench.restart()

    run(tmp_path, test)


@pytest.mark.parametrize("epoch", [3, 4, 5, 6])
def test_what_was_shown_after_the_journals_end_bears_an_epoch_that_may_be(tmp_path: Path, epoch: int) -> None:
    """Little is known of a batch that the journal has lost.

    It is not older than the last entry that there is, and not newer than the leader.
    """

    async def test(bench: PartitionBench) -> None:
        while bench.leader_epoch < 4:
            bench.restart()
        await bench.plain(b"kept")
        await bench.plain(b"lost")
        await bench.visible()
        path, segment = log_files(bench.log.directory)[0], bench.journal.segments[0].path
        last = list(LogFile(path).batches(0))[1]
        data = bytearray(path.read_bytes())
        data[last.byte + LEADER_EPOCH_AT : last.byte + LEADER_EPOCH_AT + 4] = epoch.to_bytes(4, "big")
        path.write_bytes(data)
        content = segment.read_bytes()
        entry_length = len(last.data) + 64
        segment.write_bytes(content[: 64 + entry_length] + bytes(len(content) - 64 - entry_length))
        if epoch in (4, 5):
            with pytest.raises(DamagedJournal, match="holds offset 1, which was visible"):
                bench.restart()
        else:
            bench.restart()
            assert await bench.visible() == [b"kept"]

    run(tmp_path, test)


def test_a_checkpoint_has_the_epochs() -> None:
    checkpoint = Checkpoint(100, 3, 20, 0, 500, epochs=Epochs.of([(2, 0), (9, 12)]))
    stored = encode_checkpoint(IDENTITY, checkpoint).value
    assert decode_checkpoint(stored) == checkpoint
