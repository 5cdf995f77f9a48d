"""The files of one journal as they stand on disk, to read only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from faircopy.errors import FaircopyError
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.reading import Recovered, read_entries
from faircopy.journal.segment import HEADER, HEADER_BYTES, SUFFIX, Segment
from faircopy.journal.segments import Segments, is_blank
from faircopy.journal.torn_tail import ensure_torn
from faircopy.storage.file import File
from faircopy.storage.paths import list_files
from faircopy.verify.findings import Advance, Finding

ADVANCE_BYTES = 1 << 20


def open_segment(path: Path, identity: bytes | None = None) -> Segment:
    """A segment file, to read only; of whichever journal, if none is named. Raises DamagedJournal, StorageFailure."""
    file = File(path, read_only=True)
    if identity is None:
        head = file.read(HEADER_BYTES, 0)
        identity = HEADER.unpack(head)[3] if len(head) == HEADER_BYTES else b""
    return Segment.of(path, file, identity)


class JournalFiles:
    """The segments of a journal in order. Stands in for a `Journal` where one is folded, and cuts nothing."""

    def __init__(self, segments: Segments, advance: Advance = lambda _bytes: None) -> None:
        self.directory = segments.directory
        self.segments = segments
        self.end = segments[0].base if segments else 0
        self._advance = advance
        self._bytes = sum(segment.allocated for segment in segments)
        self._told = 0

    @property
    def start_position(self) -> int:
        """The position of the first byte that there still is; 0 without files."""
        return self.segments[0].base if self.segments else 0

    def entries(self, start: int) -> Iterator[Recovered]:
        """The sound entries from `start` on, up to `end`, which is where there is none."""
        self.end, untold = start, 0
        for recovered in read_entries(self.segments, start):
            self.end = recovered.entry.end
            untold += recovered.entry.length
            if untold >= ADVANCE_BYTES:
                self._advance(untold)
                self._told, untold = self._told + untold, 0
            yield recovered

    def leave_out_below(self, position: int) -> bool:
        """Leave out the segments up to `end`, if that is below `position`, from where on the journal is needed, and a
        later segment follows a gap: a crash has brought back some of those that were deleted. False if it is not so.
        """
        here = self.segments.holding(self.end)
        later = [segment for segment in self.segments if segment.base > self.end]
        if not later or later[0].base > position or not is_blank(here, self.end):
            return False
        self.segments = Segments(self.directory, later)
        return True

    def finish(self) -> None:
        """Count as checked what was not read: there was no need to."""
        self._advance(max(self._bytes - self._told, 0))
        self._told = self._bytes

    # -- as a Journal --------------------------------------------------------------------------------------------

    def open(self) -> None:
        """It is open."""

    def recover(self, start: int, fold: Callable[[Recovered], None]) -> None:
        """Feed the entries from `start` on to `fold`. Raises DamagedJournal."""
        if not self.segments and start:
            raise DamagedJournal(f"no segment is there, and the journal was checkpointed at {start}", self.directory)
        if self.start_position > start:
            raise DamagedJournal(
                f"the journal begins at {self.start_position}, after its checkpoint at {start}", self.directory
            )
        if not self.segments:
            return
        for recovered in self.entries(start):
            self.fold_one(fold, recovered)
        ensure_torn(self.segments, self.end, known_durable=start)

    def fold_one(self, fold: Callable[[Recovered], None], recovered: Recovered) -> None:
        """Fold one entry. Raises DamagedJournal where the fold does not take it."""
        try:
            fold(recovered)
        except FaircopyError:
            raise
        except Exception as error:
            raise self.misfit(recovered.entry.position, error) from error

    def misfit(self, position: int, error: Exception) -> DamagedJournal:
        """The error for an entry that is whole, and of which nothing can be made."""
        return self.damaged(position, f"the entry there can't follow those before it ({error!r})")

    def damaged(self, position: int, what: str) -> DamagedJournal:
        """The error for a place in the journal."""
        segment = self.segments.holding(position)
        return DamagedJournal(f"{what} (journal position {position})", segment.path, segment.at(position))


def open_journal(directory: Path, identity: bytes | None, advance: Advance) -> tuple[JournalFiles, list[Finding]]:
    """A journal's files, and what is wrong with their headers; those that have damaged ones are left out."""
    segments, findings = [], []
    for path in list_files(directory, SUFFIX):
        try:
            segments.append(open_segment(path, identity))
        except FaircopyError as error:
            findings.append(finding_of(error, path))
    return JournalFiles(Segments(directory, segments), advance), findings


def check_below(files: JournalFiles, needed: int, checkpoint: int) -> Iterator[Finding]:
    """Check the entries below a checkpoint, one of which must end there (I6). None may be missing from `needed` on."""
    while True:
        for recovered in files.entries(files.start_position):
            if recovered.entry.end >= checkpoint:
                break
        if files.end >= checkpoint or not files.leave_out_below(needed):
            break
    if files.end < checkpoint:
        where = files.segments.holding(files.end)
        yield Finding(where.path, where.at(files.end), f"no sound entry (journal position {files.end})")
    elif files.end > checkpoint:
        where = files.segments.holding(checkpoint)
        yield Finding(where.path, where.at(checkpoint), f"I6: no entry ends at the checkpoint, position {checkpoint}")


def finding_of(error: Exception, path: Path) -> Finding:
    """An error as a finding; `path` is what was being checked, if the error names no other."""
    if isinstance(error, DamagedJournal) and error.path is not None:
        return Finding(error.path, error.byte, str(error).removeprefix(f"{error.path} is "))
    return Finding(path, None, str(error) if isinstance(error, FaircopyError) else repr(error))
