"""What is on the disk of one machine, read as a start would read it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from faircopy.journal.reading import read_entries
from faircopy.journal.segment import SUFFIX, Segment
from faircopy.storage.paths import exists, list_directory, with_suffix
from tests.simulation.here import on
from tests.simulation.replication.host import JOURNALS, Host
from tests.simulation.replication.promises import Content, Promises, content_of

Starts = Callable[[bytes], int]


def directory_of(journal: bytes) -> Path:
    """Where a machine keeps a journal."""
    return JOURNALS / journal.hex()


def entries_on(host: Host, journal: bytes, start: int = 0) -> list[Content]:
    """The sound entries of a journal from a position on."""
    with on(host):
        return entries_in(directory_of(journal), journal, start)


def entries_in(directory: Path, journal: bytes, start: int | None = None) -> list[Content]:
    """The sound entries of the journal in a directory, from a position on, or from where its files begin."""
    files = with_suffix(SUFFIX, list_directory(directory)) if exists(directory) else []
    segments = [Segment.open(path, journal) for path in files]
    begin = segments[0].base if start is None and segments else start or 0
    return [content_of(each.entry, each.payload) for each in read_entries(segments, begin)]


def end_of(entries: list[Content]) -> int:
    """Where these entries end."""
    return entries[-1].header.end if entries else 0


def broken_promises(host: Host, promises: Promises, starts: Starts) -> list[str]:
    """What a machine lacks of what was promised, or has that nobody has appended, when a process has ended
    there. `starts`: from where on it needs its journals.
    """
    found = []
    for journal, end in promises.of(host.number):
        start = starts(journal)
        entries = entries_on(host, journal, start)
        if max(end_of(entries), start) < end:
            found.append(
                f"machine {host.number} has journal {journal.hex()} up to {end_of(entries)}, and {end} was "
                f"promised"
            )
        found += [
            f"machine {host.number} has an entry that nobody has appended: {entry}"
            for entry in entries
            if entry not in promises.appended
        ]
    return found


def differences(leader: Host, follower: Host, promises: Promises, starts: Starts) -> list[str]:
    """Where a follower's journals are not as the leader's, from where on the leader needs them."""
    found = []
    for journal in promises.journals:
        led = entries_on(leader, journal, starts(journal))
        followed = entries_on(follower, journal)
        followed = [entry for entry in followed if entry.header.position >= starts(journal)]
        if led != followed:
            found.append(
                f"journal {journal.hex()} has {len(led)} entries at the leader up to {end_of(led)}, and "
                f"{len(followed)} up to {end_of(followed)} on machine {follower.number}"
            )
    return found
