"""What a broker does when its disk fails: one case for each bug that the simulation has found here."""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from faircopy.catalogue.journal import CatalogueJournal
from faircopy.copier.log_copier import NO_SPACE_RETRY_SECONDS
from faircopy.datalog.log import DataLog
from faircopy.datalog.segment import SUFFIX
from faircopy.hosting.checkpoints import FULL_DISK_PATIENCE_MS
from faircopy.journal.errors import JournalFull
from faircopy.settings.table import Settings
from faircopy.storage.paths import list_files
from faircopy.wire.api_keys import ApiKey
from tests.checker.check import Verdict, check
from tests.crash_states import scenarios, sweep
from tests.crash_states.stage import PUBLISHED_BEFORE, SETTINGS, TABLES_SETTINGS, Stage
from tests.crash_states.sweep import in_a_world, read_all
from tests.simulation.aftermath import Fate
from tests.simulation.consumer import EARLIEST, SimulatedConsumer
from tests.simulation.loop import VirtualLoop
from tests.simulation.lying_disk import Operation as DiskOperation
from tests.simulation.machine import DIRECTORY
from tests.simulation.producer import GaveUp


def play(test: Callable[[Stage], Awaitable[None]], settings: Settings = SETTINGS) -> None:
    """Run a test on a machine of its own."""

    async def main(loop: VirtualLoop) -> None:
        stage = Stage(loop, settings, random.Random(1))
        with stage.machine:
            await stage.begin()
            await test(stage)

    in_a_world(main)


def fail(stage: Stage, name: str, under: str) -> None:
    """Make the next operation `name` under a directory `under` fail."""

    def before(operation: DiskOperation) -> None:
        if operation.name == name and under in operation.path.parts:
            stage.machine.disk.before = lambda _: None
            raise OSError(errno.EIO, "the device has an error")

    stage.machine.disk.before = before


async def ended_itself(stage: Stage) -> bool:
    await asyncio.sleep(1)
    return not stage.machine.is_up


def test_a_failed_fsync_is_not_believed_after_a_restart() -> None:
    """I10: what the page cache holds after a failed fsync is written again before anybody sees it."""

    async def test(stage: Stage) -> None:
        await scenarios.plain(stage)
        fail(stage, "sync", "journal")
        attempt = stage.attempt("plain", None)
        with pytest.raises(GaveUp):
            await stage.plain.send("a-0", stage.values(attempt, "a-0", 1), 0)
        assert await ended_itself(stage)
        await stage.machine.start()
        stage.remote.leave()  # the connection to the one that died
        await stage.read("a-0")
        stage.machine.lose_power(Fate.LOST)
        await stage.machine.start()
        verdict, findings = check([*stage.history(), *await read_all(stage.machine)])
        assert verdict is Verdict.VALID, findings

    play(test)


def test_a_start_copies_nothing_that_may_be_lost() -> None:
    """I2: killed before an fsync, the broker lost power in the recovery. The copy outlived its source."""
    moments = sweep.play((scenarios.plain,), SETTINGS, 1)[-1]
    syncs = [moment for moment in moments if moment.operation.name == "sync"]
    killed = [moment for moment in syncs if "journal" in moment.operation.path.parts][-1]
    for again in sweep.recovery_of(SETTINGS, killed, random.Random(1)):
        again.disk.sync_everything(DIRECTORY / "log")
        left = again.disk.crash(Fate.LOST, random.Random(1))
        assert not sweep.what_is_wrong(SETTINGS, sweep.without_power(SETTINGS, again, left), 1), (
            again.operation
        )


def test_a_topic_is_made_whole_or_the_broker_ends() -> None:
    """It was in the arbiter only: its creator was told that it exists, and nobody else knew it."""

    async def test(stage: Stage) -> None:
        fail(stage, "sync directory", "journal")
        making = asyncio.create_task(stage.make_topic("c", 1, {}))
        assert await ended_itself(stage)
        await stage.machine.start()
        await making
        producer = stage.plain
        assert await producer.send("c-0", [1], 0) == 0

    play(test)


def test_a_checkpoint_whose_fsync_fails_is_not_tried_again() -> None:
    async def test(stage: Stage) -> None:
        await scenarios.plain(stage)
        fail(stage, "sync", "log")
        await asyncio.sleep(SETTINGS.checkpoint_interval_ms / 1000)
        assert await ended_itself(stage)

    play(test)


def test_the_last_checkpoint_whose_fsync_fails_is_not_believed() -> None:
    """The disk fails while the broker stops: the next start must not trust the page cache."""

    async def test(stage: Stage) -> None:
        await scenarios.plain(stage)
        fail(stage, "sync", "log")
        broker = stage.broker
        await stage.machine.stop()
        assert broker.failed.done()
        assert stage.machine.disk.find(stage.machine.directory / "doubt") is not None

    play(test)


def test_a_broker_with_a_full_disk_stops() -> None:
    async def test(stage: Stage) -> None:
        await scenarios.commit(stage)
        stage.machine.disk.before = no_space
        sending = asyncio.create_task(scenarios.commit(stage))
        await asyncio.sleep(1)
        await asyncio.wait_for(stage.machine.stop(), FULL_DISK_PATIENCE_MS / 1000 + 10)
        sending.cancel()
        stage.machine.disk.before = lambda _: None
        await stage.machine.start()
        verdict, findings = check([*stage.history(), *await read_all(stage.machine)])
        assert verdict is Verdict.VALID, findings

    play(test)


def test_a_log_that_can_not_be_written_ends_the_broker() -> None:
    """The batch had its place in the log and was never written: readers of later batches met a hole."""

    async def test(stage: Stage) -> None:
        fail(stage, "write", "log")
        await scenarios.plain(stage)
        assert await ended_itself(stage)

    play(test)


def test_records_are_deleted_while_copies_wait_for_space() -> None:
    async def test(stage: Stage) -> None:
        await scenarios.plain(stage)
        stage.machine.disk.before = no_space_for_logs
        await scenarios.plain(stage)
        await stage.remote.ask(
            ApiKey.DELETE_RECORDS,
            1,
            {
                "topics": [{"name": "a", "partitions": [{"partition_index": 0, "offset": 2}]}],
                "timeout_ms": 5_000,
            },
        )
        consumer = SimulatedConsumer(stage.remote, ["a-0"], is_committed=True)
        assert await consumer.bound("a-0", EARLIEST) == 2

    play(test)


def test_a_start_with_a_full_disk_leaves_no_segment_of_before() -> None:
    """When the log is written again, a segment that was rolled for its age is not rolled at the same place.
    Its file was left over, and the next start took it for part of the log: what it overlapped was trimmed too
    early, or never.
    """

    async def test(stage: Stage) -> None:
        await scenarios.plain(stage)
        log_of_a(stage).roll()
        for _ in range(8):
            await scenarios.plain(stage)
        stage.machine.kill()
        stage.machine.disk.before = no_space_for_logs
        await stage.machine.start()
        stage.remote.leave()  # the connection to the one that died
        stage.machine.disk.before = lambda _: None
        await asyncio.sleep(2 * NO_SPACE_RETRY_SECONDS)
        await stage.in_broker(stage.broker.checkpoint(all_changed=True))
        log = log_of_a(stage)
        assert list_files(log.directory, SUFFIX) == [segment.path for segment in log.segments]
        stage.machine.lose_power(Fate.LOST)
        await stage.machine.start()
        assert [segment.base_offset for segment in log_of_a(stage).segments] == [
            segment.base_offset for segment in log.segments
        ]
        verdict, findings = check([*stage.history(), *await read_all(stage.machine)])
        assert verdict is Verdict.VALID, findings

    play(test)


def test_a_full_catalogue_does_not_end_the_publication_of_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deletion of a table could not be noted as done, and that ended the publication of all others."""

    async def test(stage: Stage) -> None:
        real = CatalogueJournal.transact
        refused: list[Any] = []

        async def transact(self: CatalogueJournal, expected: Any, changes: Any) -> int:
            if changes == {"doomed-tables/d": None} and not refused:
                refused.append(changes)
                raise JournalFull("no space is left")
            return await real(self, expected, changes)

        monkeypatch.setattr(CatalogueJournal, "transact", transact)
        await scenarios.table_of_its_own(stage)
        await stage.send_plain("a-0")
        await stage.publish()
        assert refused
        assert len(sweep.table_of(stage.machine).reads) == 2 * (PUBLISHED_BEFORE + 1)
        assert not stage.broker.catalogue.scan("doomed-tables/")

    play(test, TABLES_SETTINGS)


def log_of_a(stage: Stage) -> DataLog:
    return stage.broker.hosted.topics["a"].partitions[0].log


def no_space(operation: DiskOperation) -> None:
    if operation.name in ("write", "allocate", "create"):
        raise OSError(errno.ENOSPC, "no space is left")


def no_space_for_logs(operation: DiskOperation) -> None:
    if operation.name == "write" and "log" in Path(operation.path).parts:
        raise OSError(errno.ENOSPC, "no space is left")
