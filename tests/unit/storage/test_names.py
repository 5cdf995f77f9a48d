"""A process that is killed leaves names that are not durable. The next start makes them so."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from faircopy.journal.entry import Entry, Kind
from faircopy.journal.journal import Journal
from faircopy.journal.options import Durability, JournalOptions
from faircopy.journal.reading import read_entries
from faircopy.storage.data_directory import DataDirectory
from faircopy.storage.system import mount
from tests.arbiter.test_session import in_virtual_time
from tests.simulation.aftermath import Fate
from tests.simulation.lying_disk import Crash, LyingDisk, Operation
from tests.simulation.threads import SimulatedThreads

DATA = Path("/data")
IDENTITY = b"p" * 20
OPERATIONS_MAX = 40


def itself(entry: Entry) -> Entry:
    return entry


async def write() -> None:
    """What a process does that makes its directory, if it is not there, and writes to one journal."""
    directory = DataDirectory(DATA, process_id=1)
    directory.sync_names()
    loop = asyncio.get_running_loop()
    threads = SimulatedThreads(loop, 2, random.Random(1))
    options = JournalOptions(Durability.FSYNC, 1 << 20, lambda: 7, lambda error: None)
    journal = Journal(directory.journal / "a" / "0", IDENTITY, threads, loop, options)
    journal.open_raw(0)
    journal.append(Kind.PLAIN, b"acked", fold=itself)
    await journal.sync()
    directory.close()


def lives(disk: LyingDisk, crash_at: int | None = None) -> bool:
    """Let a process write, and kill it before the disk's operation of this number. False if there is none."""

    def before(operation: Operation) -> None:
        if operation.number == crash_at:
            raise Crash

    disk.before = before
    with mount(disk):
        try:
            in_virtual_time(write)
        except (Crash, TimeoutError):  # a thread that is killed reports nothing
            assert crash_at is not None
            return True
    return False


def test_what_is_acked_is_there_although_the_process_before_was_killed_anywhere() -> None:
    for crash_at in range(1, OPERATIONS_MAX):
        disk = LyingDisk(lambda: 0)
        if not lives(disk, crash_at):
            break
        disk = disk.kill()
        assert not lives(disk)
        disk = disk.crash(Fate.LOST, random.Random(1))
        with mount(disk):
            directory = DATA / "journal" / "a" / "0"
            journal = Journal(directory, IDENTITY, None, None, OPTIONS)  # type: ignore[arg-type]
            journal.segments.open(IDENTITY)
            found = [bytes(each.payload) for each in read_entries(journal.segments, 0)]
        assert b"acked" in found, f"killed before operation {crash_at}"
    else:
        pytest.fail("there are more operations than are tried")


OPTIONS = JournalOptions(Durability.FSYNC, 1 << 20, lambda: 7, lambda error: None)
