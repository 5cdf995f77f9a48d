"""Journals and logs on their own, if the state store can't say where they begin and end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from faircopy.errors import FaircopyError
from faircopy.journal.torn_tail import ensure_torn
from faircopy.verify.findings import Advance, Finding
from faircopy.verify.journal_files import finding_of, open_journal
from faircopy.verify.log_files import DamagedLogFile, LogFile, base_offset_of, log_files


def check_loose_journal(directory: Path, advance: Advance) -> Iterator[Finding]:
    """Check every entry of a journal, up to a place after which nothing shows that more was durable."""
    files, findings = open_journal(directory, None, advance)
    yield from findings
    if files.segments and not findings:
        try:
            for _ in files.entries(files.start_position):
                pass
            ensure_torn(files.segments, files.end, known_durable=files.start_position)
        except FaircopyError as error:
            yield finding_of(error, directory)
    files.finish()


def check_loose_log(directory: Path, advance: Advance) -> Iterator[Finding]:
    """Check every batch of a log's files. The last end may be torn; only a checkpoint would tell."""
    for path in log_files(directory):
        base = base_offset_of(path)
        try:
            for _ in LogFile(path, advance).batches(base):
                pass
        except DamagedLogFile as error:
            yield Finding(path, error.byte, error.what)
