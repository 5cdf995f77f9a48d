"""What a follower's directory has, against what the leader's has."""

from __future__ import annotations

from pathlib import Path

from faircopy.journal.segment import SUFFIX, identity_in
from faircopy.storage.paths import list_directory, with_suffix
from tests.simulation.here import on
from tests.simulation.machine import DIRECTORY, Machine
from tests.simulation.replication.copies import end_of, entries_in
from tests.simulation.replication.promises import Content

JOURNALS = DIRECTORY / "journal"


def unequal(leader: Machine, follower: Machine) -> list[str]:
    """Where a follower's journals are not as the leader's, from where on the leader still has them."""
    with on(leader):
        led = {directory: entries_of(directory) for directory in journals()}
    with on(follower):
        followed = set(journals())
        found = [f"{each} is only on one of the machines" for each in sorted(followed ^ set(led))]
        for directory in sorted(followed & set(led)):
            start, entries = led[directory]
            mine = [each for each in entries_of(directory)[1] if each.header.position >= start]
            if mine != entries:
                found.append(
                    f"{directory} has {len(entries)} entries, {start} to {end_of(entries)} at the leader, "
                    f"and {len(mine)} to {end_of(mine)} at the follower"
                )
    return found


def journals() -> list[Path]:
    """The directories of all journals on this machine."""
    return [
        path for topic in list_directory(JOURNALS) for path in list_directory(topic) if holds_journal(path)
    ]


def holds_journal(path: Path) -> bool:
    """Whether a directory has segments."""
    return bool(with_suffix(SUFFIX, list_directory(path)))


def entries_of(directory: Path) -> tuple[int, list[Content]]:
    """Where the files of a journal begin, and their sound entries."""
    first = with_suffix(SUFFIX, list_directory(directory))[0]
    identity = identity_in(directory)
    assert identity is not None
    return int(first.stem), entries_in(directory, identity)
