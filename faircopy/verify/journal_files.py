"""The files of one journal as they are on disk, read-only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from faircopy.errors import DoesNotFold, FaircopyError
from faircopy.journal.entry import Entry
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.opening import epochs_with
from faircopy.journal.reading import Recovered, read_entries
from faircopy.journal.segment import HEADER, HEADER_BYTES, SUFFIX, Segment
from faircopy.journal.segments import Segments, is_blank
from faircopy.journal.torn_tail import ensure_torn
from faircopy.storage.epoch_history import NO_EPOCHS, UNKNOWN_EPOCHS, Epochs
from faircopy.storage.file import File
from faircopy.storage.paths import list_files
from faircopy.verify.findings import Advance, Finding
from faircopy.verify.journal_epochs import EpochsFound

ADVANCE_BYTES = 1 << 20


def open_segment(path: Path, identity: bytes | None = None) -> Segment:
    """A segment file, read-only; `identity` None: of any journal. Raises DamagedJournal, StorageFailure."""
    file = File(path, read_only=True)
    if identity is None:
        head = file.read(HEADER_BYTES, 0)
        identity = HEADER.unpack(head)[3] if len(head) == HEADER_BYTES else b""
    return Segment.of(path, file, identity)


class JournalFiles:
    """The segments of a journal in order. Stands in for a `Journal` that is folded, but cuts nothing."""

    def __init__(self, segments: Segments, advance: Advance = lambda _bytes: None) -> None:
        self.directory = segments.directory
        self.segments = segments
        self.end = segments[0].base if segments else 0
        self._advance = advance
        self._bytes = sum(segment.allocated for segment in segments)
        self._told = 0

    @property
    def start_position(self) -> int:
        """The position of the first byte that still exists; 0 without files."""
        return self.segments[0].base if self.segments else 0

    def entries(self, start: int) -> Iterator[Recovered]:
        """The sound entries from `start` on, up to `end`, the first place without one."""
        self.end, untold = start, 0
        for recovered in read_entries(self.segments, start):
            self.end = recovered.entry.end
            untold += recovered.entry.length
            if untold >= ADVANCE_BYTES:
                self._advance(untold)
                self._told, untold = self._told + untold, 0
            yield recovered

    def leave_out_below(self, position: int) -> bool:
        """Leave out the segments up to `end` if `end` is below `position`, where the needed part of the
        journal begins, and if a later segment follows after a gap: then a crash has brought back some deleted
        segments. Otherwise return False.
        """
        here = self.segments.holding(self.end)
        later = [segment for segment in self.segments if segment.base > self.end]
        if not later or later[0].base > position or not is_blank(here, self.end):
            return False
        self.segments = Segments(self.directory, later)
        return True

    def finish(self) -> None:
        """Count the bytes as checked that did not have to be read."""
        self._advance(max(self._bytes - self._told, 0))
        self._told = self._bytes

    # -- the methods of a Journal ----------------------------------------------------------------------------

    def open(self, start: int, epochs: Epochs = NO_EPOCHS) -> FilesOpening:
        """Read it from `start` on, up to which the entries have these epochs. Raises DamagedJournal."""
        if not self.segments and start:
            raise DamagedJournal(
                f"no segment is there, and the journal was checkpointed at {start}", self.directory
            )
        if self.start_position > start:
            raise DamagedJournal(
                f"the journal begins at {self.start_position}, after its checkpoint at {start}",
                self.directory,
            )
        return FilesOpening(self, start, epochs)

    def ensure_leads(self, opening: FilesOpening) -> None:
        """Do nothing: nobody leads files."""

    def accept(self, opening: FilesOpening) -> None:
        """Do nothing: the files stay as they are."""

    def misfit(self, position: int, error: Exception) -> DamagedJournal:
        """The error for a sound entry that makes no sense here."""
        return self.damaged(position, f"the entry there can't follow those before it ({error!r})")

    def damaged(self, position: int, what: str) -> DamagedJournal:
        """The error for a place in the journal."""
        segment = self.segments.holding(position)
        return DamagedJournal(f"{what} (journal position {position})", segment.path, segment.at(position))


class FilesOpening:
    """Stands in for an `Opening` of a journal that is only read."""

    def __init__(self, files: JournalFiles, start: int, epochs: Epochs) -> None:
        self._files = files
        self._start = start
        self._epochs = epochs

    def entries(self) -> Iterator[Recovered]:
        """The sound entries. Raises DamagedJournal if one is of an older epoch than the one before it."""
        for recovered in self._files.entries(self._start):
            try:
                self._epochs = epochs_with(self._epochs, recovered.entry)
            except DoesNotFold as error:
                self.refuse(recovered.entry, error)
            yield recovered

    def refuse(self, entry: Entry, error: Exception) -> None:
        """Raise DamagedJournal, since an entry did not fold; or the error itself, if it is one of ours."""
        if isinstance(error, FaircopyError):
            raise error
        raise self._files.misfit(entry.position, error) from error

    def judge_end(self) -> None:
        """Raise DamagedJournal unless what follows the entries is nothing, or a torn tail."""
        if self._files.segments:
            ensure_torn(self._files.segments, self._files.end, known_durable=self._start)


def open_journal(
    directory: Path, identity: bytes | None, advance: Advance
) -> tuple[JournalFiles, list[Finding]]:
    """A journal's files, and the faults in their headers; files with damaged headers are left out."""
    segments, findings = [], []
    for path in list_files(directory, SUFFIX):
        try:
            segments.append(open_segment(path, identity))
        except FaircopyError as error:
            findings.append(finding_of(error, path))
    return JournalFiles(Segments(directory, segments), advance), findings


def check_below(
    files: JournalFiles, needed: int, checkpoint: int, epochs: Epochs = UNKNOWN_EPOCHS
) -> Iterator[Finding]:
    """Check the entries below a checkpoint: one must end there (I6), none may be missing from `needed` on,
    and they must have the `epochs` that the checkpoint has, as far as it has any.
    """
    while True:
        found = EpochsFound(files.start_position)
        for recovered in files.entries(files.start_position):
            found.note(recovered.entry)
            if recovered.entry.end >= checkpoint:
                break
        if files.end >= checkpoint or not files.leave_out_below(needed):
            break
    if files.end < checkpoint:
        where = files.segments.holding(files.end)
        yield Finding(where.path, where.at(files.end), f"no sound entry (journal position {files.end})")
    elif files.end > checkpoint:
        where = files.segments.holding(checkpoint)
        yield Finding(
            where.path, where.at(checkpoint), f"I6: no entry ends at the checkpoint, position {checkpoint}"
        )
    elif difference := found.difference(epochs):
        yield Finding(files.directory, None, difference)


def finding_of(error: Exception, path: Path) -> Finding:
    """An error as a finding, in the file that the error names, or else in `path`."""
    if isinstance(error, DamagedJournal) and error.path is not None:
        return Finding(error.path, error.byte, str(error).removeprefix(f"{error.path} is "))
    return Finding(path, None, str(error) if isinstance(error, FaircopyError) else repr(error))
