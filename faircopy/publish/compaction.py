"""What to merge, so that a table is fast to read.

Batch reads take one large file where many small ones were published. Merging serves them alone: streams and
all readers that list the directory go on reading the small files, which stay as long as their rows live. So a
merge takes nothing from anybody, and can be done once and for all: what is merged is never merged again.

In a table by days, files that were published on different days (UTC) are not merged, so that a merged file
has the rows of one day, but for late ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from faircopy.publish import names
from faircopy.publish.spark_log import DataFile

MEBIBYTE = 1024 * 1024

MANY_FILES = 256  # at one publication in ten seconds they are those of 43 minutes
LARGE_BYTES = 64 * MEBIBYTE  # a file as large as this is left alone
MERGED_BYTES = 128 * MEBIBYTE
DAY_MS = 86_400_000


class Merge(NamedTuple):
    """Merge the live files from number `start` to before `stop` into one."""

    start: int
    stop: int


class Unmerged(NamedTuple):
    """The small files at the end of a table, so that nobody has to look at all files before it is time.

    `is_closed` says that small files somewhere before can't become more. In a table `by_day`, they are those
    of the day `day`, counted from 1970.
    """

    by_day: bool = False
    files: int = 0
    size_bytes: int = 0
    is_closed: bool = False
    day: int = 0

    @property
    def is_due(self) -> bool:
        """Whether `plan` may find something to merge."""
        return self.is_closed or self.files >= MANY_FILES or self.size_bytes >= MERGED_BYTES

    def with_file(self, file: DataFile) -> Unmerged:
        """After a file has come to the end."""
        is_closed = self.is_closed or self.files > 1
        if not _is_small(file):
            return Unmerged(self.by_day, is_closed=is_closed)
        day = _day_of(file)
        if self.by_day and self.files and day != self.day:
            return Unmerged(self.by_day, 1, file.size, is_closed, day)
        return self._replace(files=self.files + 1, size_bytes=self.size_bytes + file.size, day=day)


def unmerged_in(live: Iterable[DataFile], *, by_day: bool) -> Unmerged:
    """What waits in a table with these files, oldest first."""
    unmerged = Unmerged(by_day)
    for file in live:
        unmerged = unmerged.with_file(file)
    return unmerged


def plan(files: Sequence[DataFile], *, by_day: bool) -> list[Merge]:
    """The merges to do now, in order, none overlapping; `files` are the live ones, oldest first.

    Small neighbours are merged when they are many, or large enough together, or can't become more.
    """
    return [merge for run in runs(files, by_day=by_day) for merge in _worthwhile(files, run)]


def runs(files: Sequence[DataFile], *, by_day: bool) -> Iterator[Merge]:
    """The longest runs of neighbours that may be merged."""
    start = 0
    for number in range(len(files) + 1):
        if number == len(files) or not _is_small(files[number]):
            if number > start:
                yield Merge(start, number)
            start = number + 1
        elif by_day and number > start and _day_of(files[number]) != _day_of(files[number - 1]):
            yield Merge(start, number)
            start = number


def _day_of(file: DataFile) -> int:
    """The day on which a file was published."""
    return file.modified_ms // DAY_MS


def _is_small(file: DataFile) -> bool:
    is_ordinary = not (file.is_covered or names.is_merged(file.name) or names.is_schema(file.name))
    return is_ordinary and file.size < LARGE_BYTES


def _worthwhile(files: Sequence[DataFile], run: Merge) -> Iterator[Merge]:
    start, total_bytes = run.start, 0
    for number in range(*run):
        total_bytes += files[number].size
        if number + 1 - start >= MANY_FILES or total_bytes >= MERGED_BYTES:
            yield Merge(start, number + 1)
            start, total_bytes = number + 1, 0
    if run.stop < len(files) and run.stop - start > 1:
        yield Merge(start, run.stop)
