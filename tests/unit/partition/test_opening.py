"""Opening yields the partition, or one that is stopped by its damage and has all its files still."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pytest

from faircopy.copier.log_copier import LogCopier
from faircopy.errors import FaircopyError
from faircopy.journal.entry import TransactionId
from faircopy.journal.errors import DamagedJournal
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
    partitions = [cast(HostedPartition, object()) for _ in range(OPENED_AT_ONCE * OPENERS * 2 + 3)]
    last_is_opened = threading.Event()

    def open_one(number: int) -> HostedPartition:
        if number == 0:
            assert last_is_opened.wait(300)  # it ends a hang; who is merely slow takes less
        elif number == len(partitions) - 1:
            last_is_opened.set()
        return partitions[number]

    assert asyncio.run(opened([partial(open_one, number) for number in range(len(partitions))])) == partitions
    assert asyncio.run(opened([])) == []


def test_what_keeps_one_of_many_from_opening_is_raised() -> None:
    def lacks_space() -> HostedPartition:
        raise NoSpace("the disk is full")

    with pytest.raises(NoSpace):
        asyncio.run(opened([lacks_space]))


@pytest.mark.parametrize("full_at", [0, OPENED_AT_ONCE - 1, OPENED_AT_ONCE * OPENERS + 2])
def test_none_of_many_is_left_if_one_can_not_be_opened(full_at: int) -> None:
    """Each may have copies to make. They must not go on when the same files are opened again."""
    openings = [mock.Mock() for _ in range(OPENED_AT_ONCE * OPENERS * 2)]
    for opening in openings:
        opening.return_value = mock.Mock(spec=HostedPartition)
        opening.return_value.name = "a-0"
    openings[full_at].side_effect = NoSpace("the disk is full")
    with pytest.raises(NoSpace):
        asyncio.run(opened(openings))
    for number, opening in enumerate(openings):
        is_open = opening.called and number != full_at
        assert opening.return_value.abandon.called == opening.return_value.let_go.called == is_open


async def opened(openings: Sequence[Callable[[], HostedPartition]]) -> list[HostedPartition]:
    """What is opened if each partition is opened by a function."""
    disk = DiskPool(asyncio.get_running_loop(), threads=OPENERS)
    try:
        with mock.patch.object(opening_many, "open_partition", lambda opening, _resources: opening()):
            return await open_many(cast(Any, openings), cast(Any, mock.Mock(disk=disk)))
    finally:
        disk.close()
