"""Opening yields the partition, or one that is stopped by its damage and has all its files still."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pytest

from faircopy.copier.log_copier import LogCopier
from faircopy.errors import FaircopyError
from faircopy.journal.entry import TransactionId
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.journal import Journal
from faircopy.journal.shipping import NOT_SHIPPED, NotShipped, Shipping
from faircopy.partition import opening_many
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.opening import open_partition
from faircopy.partition.opening_many import OPENED_AT_ONCE, OPENERS, open_many
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.failures import NoSpace
from tests.unit.copier.partition_bench import PartitionBench, run

OPEN = TransactionId(7, 0, 1)
BYTES_OF_A_TORN_ENTRY = b"\xff" * 100


def files_in(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for name in ("journal", "log") for path in (directory / name).iterdir()}


def open_again(bench: PartitionBench) -> HostedPartition:
    """What a new process opens, under the epoch that `bench.unopened` says."""
    return open_partition(bench.unopened(), bench.resources)


def test_a_partition_without_files_is_made(tmp_path: Path) -> None:
    async def test(bench: PartitionBench) -> None:
        unopened = bench.unopened()._replace(journal_path=tmp_path / "new", log_path=tmp_path / "new log")
        partition = open_partition(unopened, bench.resources)
        assert (partition.failure, partition.log.end_offset, partition.leader_epoch) == (None, 0, 1)
        assert partition.log is partition.copier.log

    run(tmp_path, test)


def test_what_was_opened_goes_on_after_the_checkpoint(tmp_path: Path) -> None:
    async def test(bench: PartitionBench) -> None:
        await bench.plain(b"one")
        await bench.partition.checkpoint()
        await bench.plain(b"two", b"three")
        await bench.draft(OPEN, 0, b"draft")
        await bench.visible()
        bench.leader_epoch += 1
        partition = open_again(bench)
        assert partition.failure is None
        assert (partition.log.end_offset, partition.state.next_offset) == (3, 3)
        assert partition.checkpoint_position < partition.state.position == bench.journal.watermarks.appended
        assert list(partition.state.undecided) == [OPEN]

    run(tmp_path, test)


def test_one_that_is_damaged_is_stopped_and_nothing_of_it_is_cut(tmp_path: Path) -> None:
    """Its damage is found last, when all is folded: the torn tails are still there."""

    async def test(bench: PartitionBench) -> None:
        await bench.plain(b"one")
        await bench.visible()
        (journal,), (log,) = (tmp_path / "journal").iterdir(), (tmp_path / "log").glob("*.log")
        with journal.open("r+b") as file:
            file.seek(bench.journal.segments[0].at(bench.journal.watermarks.appended))
            file.write(BYTES_OF_A_TORN_ENTRY)
        with log.open("ab") as file:
            file.write(BYTES_OF_A_TORN_ENTRY)
        before = files_in(tmp_path)
        partition = open_again(bench)  # under the epoch that has led before
        assert isinstance(partition.failure, DamagedJournal)
        assert "of leader epoch 1, but the next epoch is 1" in str(partition.failure)
        assert files_in(tmp_path) == before
        bench.leader_epoch += 1
        assert open_again(bench).failure is None
        changed = {path for path, content in files_in(tmp_path).items() if content != before[path]}
        assert changed == {journal, log}

    run(tmp_path, test)


@pytest.mark.parametrize(
    ("error", "type_of_failure"),
    [(OSError(5, "input/output error"), FaircopyError), (DamagedJournal("x"), DamagedJournal)],
)
def test_what_stops_it_is_one_of_our_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, type_of_failure: type[FaircopyError]
) -> None:
    async def test(bench: PartitionBench) -> None:
        monkeypatch.setattr(LogCopier, "open", raising(error))
        partition = open_again(bench)
        assert type(partition.failure) is type_of_failure
        assert str(partition.failure) == str(error)

    run(tmp_path, test)


def test_a_shortage_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(bench: PartitionBench) -> None:
        monkeypatch.setattr(LogCopier, "open", raising(NoSpace("the disk is full")))
        with pytest.raises(NoSpace):
            open_again(bench)

    run(tmp_path, test)


def raising(error: Exception) -> Callable[..., None]:
    def fail(*_arguments: Any) -> None:
        raise error

    return fail


# -- many of them --------------------------------------------------------------------------------------------


def test_many_are_opened_in_their_order() -> None:
    """Also if the first one takes longer than all others."""
    partitions = some_partitions(OPENED_AT_ONCE * OPENERS * 2 + 3)
    last_is_opened = threading.Event()

    def recover_one(partition: HostedPartition) -> None:
        if partition is partitions[0]:
            assert last_is_opened.wait(300)  # it ends a hang; who is merely slow takes less
        elif partition is partitions[-1]:
            last_is_opened.set()

    assert asyncio.run(opened(partitions, recover_one)) == partitions
    assert asyncio.run(opened([], recover_one)) == []


def test_all_replicas_have_them_before_one_is_folded() -> None:
    partitions = some_partitions(3)
    happened: list[object] = []

    class Notes(NotShipped):
        async def share(self, journals: Sequence[Journal]) -> None:
            await asyncio.sleep(0)
            happened.append(journals)

    asyncio.run(opened(partitions, happened.append, Notes()))
    assert happened == [[each.journal for each in partitions], *partitions]


@pytest.mark.parametrize("full_at", [0, OPENED_AT_ONCE - 1, OPENED_AT_ONCE * OPENERS + 2])
def test_none_of_many_is_left_if_one_can_not_be_opened(full_at: int) -> None:
    """Each may have copies to make. They must not go on when the same files are opened again."""
    partitions = some_partitions(OPENED_AT_ONCE * OPENERS * 2)
    begun: list[HostedPartition] = []

    def recover_one(partition: HostedPartition) -> None:
        begun.append(partition)
        if partition is partitions[full_at]:
            raise NoSpace("the disk is full")

    with pytest.raises(NoSpace):
        asyncio.run(opened(partitions, recover_one))
    assert len(begun) < len(partitions)
    for partition in cast(list[Any], partitions):
        assert partition.abandon.called and partition.let_go.called


def some_partitions(count: int) -> list[HostedPartition]:
    """Partitions that are not opened yet."""
    partitions = [mock.Mock(spec=HostedPartition, journal=mock.Mock()) for _ in range(count)]
    for partition in partitions:
        partition.name = "a-0"
    return cast(list[HostedPartition], partitions)


async def opened(
    partitions: Sequence[HostedPartition],
    recover_one: Callable[[HostedPartition], None],
    shipping: Shipping = NOT_SHIPPED,
) -> list[HostedPartition]:
    """What is opened if each of these partitions is recovered by a function."""
    disk = DiskPool(asyncio.get_running_loop(), threads=OPENERS)
    try:
        with (
            mock.patch.object(opening_many, "assemble", lambda partition, _resources: partition),
            mock.patch.object(opening_many, "recover_or_stop", lambda each, _store: recover_one(each)),
        ):
            return await open_many(cast(Any, partitions), cast(Any, mock.Mock(disk=disk, shipping=shipping)))
    finally:
        disk.close()
