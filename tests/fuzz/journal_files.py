"""Journals whose segment files have edits, to recovery.

An edit that a disk can make is found by its checksum.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from faircopy.copier.fold import APPLY_PAYLOAD, DISCARD_PAYLOAD, PREPARED_PAYLOAD, TRIM_PAYLOAD
from faircopy.journal.entry import Kind, TransactionId
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.reverse_list import ReverseWalk, read_from_disk
from faircopy.journal.segment import HEADER_BYTES as SEGMENT_HEADER_BYTES
from faircopy.journal.segment import file_name
from faircopy.storage.failures import StorageFailure
from faircopy.storage.system import mount
from faircopy.wire.records import NewRecord, build_batch
from tests.fuzz.choices import Choices
from tests.fuzz.journals import IDENTITY, JOURNAL, Writer, Written, new_journal, segment_files
from tests.fuzz.memory import MemoryDisk, changed_files

COMMITTED = TransactionId(7, 0, 1)


def sound_entries() -> list[Written]:
    """A journal of twelve entries: batches, two transactions, one of them discarded, and a trim."""
    writer = Writer()
    batch = build_batch([NewRecord(b"value", b"key", 1_000)])
    committed, aborted = COMMITTED, TransactionId(8, 0, 2)
    for _ in range(2):
        writer.add(Kind.PLAIN, batch, records=1)
    first = writer.position
    writer.add(Kind.DRAFT, batch, records=1, transaction=committed)
    writer.add(Kind.DRAFT, batch * 3, records=1, transaction=aborted, durable=first)
    writer.add(Kind.DRAFT, batch, records=1, transaction=committed, previous=first)
    writer.add(Kind.PREPARED, PREPARED_PAYLOAD.pack(2, -1), transaction=committed)
    writer.add(Kind.APPLY, APPLY_PAYLOAD.pack(-1, 0), transaction=committed, durable=writer.position)
    writer.add(Kind.DISCARD, DISCARD_PAYLOAD.pack(1, -1), transaction=aborted, durable=writer.position)
    writer.add(Kind.TRIM, TRIM_PAYLOAD.pack(1), durable=writer.position)
    for _ in range(3):
        writer.add(Kind.PLAIN, batch, records=1, durable=first)
    return writer.written


SOUND = sound_entries()
DRAFTS = [each for each in SOUND if each.entry.kind == Kind.DRAFT and each.entry.transaction == COMMITTED]
HEAD = DRAFTS[-1].entry.position
BASES = (0, SOUND[4].entry.position, SOUND[9].entry.position)
SOUND_FILES = segment_files(SOUND, IDENTITY, BASES)
NEW_NAMES = ["0.journal", "x.journal", "1.tmp", file_name(1)]
STARTS = [written.entry.position for written in SOUND] + [SOUND[-1].entry.end]


def feed_files(data: bytes) -> bool:
    """The position of the checkpoint, which file to edit or to lose, and the edits.

    What is recovered was written, and what is cut was not durable, as far as what is left can tell.
    """
    choices = Choices(data)
    start, files = choices.one_of(STARTS), changed_files(SOUND_FILES, NEW_NAMES, choices)
    with mount(MemoryDisk(files)):
        check_walk()
        first = recovered(start)
        if first is None:
            return False
        expected = [each for each in SOUND if each.entry.position >= start]
        assert first == expected[: len(first)]
        end = first[-1].entry.end if first else start
        lost = [each for each in still_there(files) if each.entry.position > end and each.entry.durable > end]
        assert not lost, "I9: what was durable is never cut"
        assert recovered(start) == first, "what is recovered once is recovered again"
    return True


def check_walk() -> None:
    """A transaction's drafts, as they are read when it is applied."""
    journal = new_journal(IDENTITY)
    with contextlib.suppress(DamagedJournal, StorageFailure):
        journal.segments.open(IDENTITY)
        walk = ReverseWalk(journal, COMMITTED, read_from_disk)
        for keep_bytes in (0, 1 << 20):
            drafts = walk.collect(HEAD, keep_bytes)
            assert [walk.payload(draft.entry) for draft in drafts] == [each.payload for each in DRAFTS]


def still_there(files: dict[Path, bytes]) -> list[Written]:
    """The entries that stand where they were written."""
    found = []
    for each in SOUND:
        base = max(base for base in BASES if base <= each.entry.position)
        at = SEGMENT_HEADER_BYTES + each.entry.position - base
        if files.get(JOURNAL / file_name(base), b"")[at : at + each.entry.length] == each.encoded:
            found.append(each)
    return found


def recovered(start: int) -> list[Written] | None:
    """What recovery finds after a checkpoint; None if it says that the journal is damaged."""
    found: list[Written] = []
    journal = new_journal(IDENTITY)
    try:
        opening = journal.open(start)
        found += (Written(each.entry, bytes(each.payload)) for each in opening.entries())
        opening.judge_end()
        journal.accept(opening)
    except (DamagedJournal, StorageFailure):
        return None
    assert journal.watermarks.appended == (found[-1].entry.end if found else start)
    return found
