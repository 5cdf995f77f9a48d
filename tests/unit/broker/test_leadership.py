"""Who lets a broker lead, and how much of what its last life acknowledged counts as there."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from faircopy.arbiter.directory_note import NOTE_NAME, DirectoryNote
from faircopy.arbiter.membership import Elected
from faircopy.arbiter.record import Grade
from faircopy.broker import leadership
from faircopy.broker.environment import Environment
from faircopy.broker.leadership import (
    Leadership,
    LeadsAlone,
    OfAReplicaSet,
    Start,
    ensure_fenced,
    grade_of,
    leadership_of,
    locked_directory,
    survival_of,
)
from faircopy.settings.table import BadSetting, Settings
from faircopy.storage.copied import is_copied
from faircopy.storage.data_directory import DataDirectoryError, DirectoryInUse
from faircopy.storage.epochs import EPOCHS_SKIPPED, incarnation, note_incarnation
from faircopy.storage.last_end import LastEnd
from faircopy.storage.local_notes import LocalNotes
from faircopy.transactions.survival import Survival
from tests.arbiter.test_session import in_virtual_time
from tests.simulation.loop import VirtualLoop
from tests.simulation.store import Contents, SimulatedStore

ALONE = Settings(data_dir="/data")


def with_notes(test: Callable[[LocalNotes], Awaitable[None]]) -> None:
    """Run a test with the notes of an empty directory."""

    async def main() -> None:
        loop = cast(VirtualLoop, asyncio.get_running_loop())
        await test(LocalNotes(SimulatedStore(Contents(), loop, random.Random(1), lambda: None)))

    in_virtual_time(main)


def test_who_leads_alone_counts_its_starts() -> None:
    async def main(notes: LocalNotes) -> None:
        for number in (1, 2):
            taken = await LeadsAlone("/data").take(notes, Grade.DURABLE, "here:9092")
            assert taken == Elected(number, Grade.DURABLE)

    with_notes(main)


def test_a_directory_of_a_set_is_not_led_alone() -> None:
    """Also when the set was only asked for: the arbiter may have agreed."""

    async def main(notes: LocalNotes) -> None:
        for note in (DirectoryNote("an id"), DirectoryNote("an id", is_member=True, broker=1, last=4)):
            await notes.write({NOTE_NAME: note.encode()})
            with pytest.raises(OfAReplicaSet, match=r"/data belongs to a replica set \(set id an id"):
                await LeadsAlone("/data").take(notes, Grade.DRAFTS, "here:9092")
        assert incarnation(notes) == 0, "nothing has changed"

    with_notes(main)


def test_a_set_needs_an_arbiter() -> None:
    async def main() -> None:
        assert not leadership_of(ALONE, Environment(), Start()).is_of_a_set
        with pytest.raises(BadSetting, match="--new-set and --replicas make a replica set"):
            leadership_of(ALONE, Environment(), Start(makes_set=True))

    in_virtual_time(main)


CLEAN, KILLED = LastEnd(True, True, True), LastEnd(False, True, True)
CLEAN_BEFORE_A_BOOT = LastEnd(True, False, True)
NO_POWER, NO_POWER_UNSYNCED = LastEnd(False, False, True), LastEnd(False, False, False)


@pytest.mark.parametrize(
    ("end", "is_unclean", "grade"),
    [
        (CLEAN, False, Grade.DRAFTS),
        (CLEAN_BEFORE_A_BOOT, False, Grade.DRAFTS),
        (KILLED, False, Grade.DRAFTS),
        (KILLED, True, Grade.DURABLE),
        (CLEAN, True, Grade.DURABLE),
        (NO_POWER, False, Grade.DURABLE),
        (NO_POWER_UNSYNCED, False, Grade.UNKNOWN),
        (LastEnd(False, True, False), False, Grade.DRAFTS),
        (LastEnd(False, True, False), True, Grade.UNKNOWN),
    ],
)
def test_what_is_there_after_an_end(end: LastEnd, is_unclean: bool, grade: Grade) -> None:
    assert grade_of(end, is_unclean=is_unclean) is grade


@pytest.mark.parametrize(
    ("grade", "is_clean", "survival"),
    [
        (Grade.DRAFTS, True, Survival.EVERYTHING),
        (Grade.DRAFTS, False, Survival.WRITTEN),
        (Grade.DURABLE, True, Survival.SYNCED),
        (Grade.DURABLE, False, Survival.SYNCED),
        (Grade.UNKNOWN, True, Survival.UNKNOWN),
        (Grade.UNKNOWN, False, Survival.UNKNOWN),
    ],
)
def test_what_a_recovery_goes_by(grade: Grade, is_clean: bool, survival: Survival) -> None:
    """A loss that the record tells of is one, although the last life ended in order."""
    assert survival_of(grade, is_clean=is_clean) is survival


@pytest.mark.parametrize("kind", ["nfs", None])
def test_a_disk_on_which_two_machines_may_write(kind: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leadership, "network_file_system", lambda path: kind)
    if kind is None:
        ensure_fenced(Path("/data"))
    else:
        with pytest.raises(DataDirectoryError, match="/data is on nfs, where a broker that has lost"):
            ensure_fenced(Path("/data"))


class Turns:
    """Counts how often a start waited for its turn."""

    def __init__(self, *, is_of_a_set: bool) -> None:
        self.is_of_a_set = is_of_a_set
        self.count = 0

    async def until_turn(self) -> None:
        self.count += 1


@pytest.mark.parametrize("is_of_a_set", [False, True])
def test_a_locked_directory(
    is_of_a_set: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Who leads alone fails; a member of a set waits, says so once, and asks for its turn again."""
    tries = iter([DirectoryInUse(Path("/data"), "7")] * 3)

    def opened(*_arguments: Any) -> str:
        for error in tries:
            raise error
        return "the directory"

    async def main() -> None:
        monkeypatch.setattr(leadership, "DataDirectory", opened)
        turns = Turns(is_of_a_set=is_of_a_set)
        waiting = locked_directory(ALONE, cast(Leadership, turns), 1)
        if is_of_a_set:
            assert await waiting == cast(Any, "the directory")
            assert turns.count == 4
        else:
            with pytest.raises(DirectoryInUse):
                await waiting

    in_virtual_time(main)
    said = [each for each in caplog.records if "This start waits until it is unlocked" in each.getMessage()]
    assert len(said) == int(is_of_a_set)


def test_a_directory_leaves_its_set_for_good() -> None:
    """It is led under epochs that the set will not reach, gives out ids that the set will not, and comes back
    only empty.
    """

    async def main(notes: LocalNotes) -> None:
        member = DirectoryNote("an id", is_member=True, broker=2, last=4)
        await notes.write({NOTE_NAME: member.encode()})
        await note_incarnation(notes, 9)
        taken = await LeadsAlone("/data", leaves_set=True).take(notes, Grade.DRAFTS, "here:9092")
        assert taken == Elected(9 + EPOCHS_SKIPPED + 1, Grade.DRAFTS)
        assert is_copied(notes) and notes.get(NOTE_NAME) is None
        assert await LeadsAlone("/data").take(notes, Grade.DRAFTS, "here:9092")

    with_notes(main)


def test_alone_means_without_an_arbiter() -> None:
    settings = Settings(data_dir="/data", arbiter="lmdb:/arbiter", replica_set="orders")
    with pytest.raises(BadSetting, match="--alone is for a broker without its replica set"):
        leadership_of(settings, Environment(), Start(leaves_set=True))
