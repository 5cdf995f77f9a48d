"""What to merge, so that a table is fast to read.

Batch reads take one large file where many small ones were published. Merging serves them alone: streams and
all readers that list the directory go on reading the small files, which stay as long as their rows live. So a
merge takes nothing from anybody, and can be done once and for all: what is merged is never merged again.
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


class Merge(NamedTuple):
    """Merge the live files from number `start` to before `stop` into one."""

    start: int
    stop: int


class Unmerged(NamedTuple):
    """The small files at the end of a table, so that nobody has to look at all files before it is time.

    `is_closed` says that small files somewhere before can't become more.
    """

    files: int = 0
    size_bytes: int = 0
    is_closed: bool = False

    @property
    def is_due(self) -> bool:
        """Whether `plan` may find something to merge."""
        return self.is_closed or self.files >= MANY_FILES or self.size_bytes >= MERGED_BYTES

    def with_file(self, file: DataFile) -> Unmerged:
        """After a file has come to the end."""
        if _is_small(file):
            return Unmerged(self.files + 1, self.size_bytes + file.size, self.is_closed)
        return Unmerged(is_closed=self.is_closed or self.files > 1)


def unmerged_in(live: Iterable[DataFile]) -> Unmerged:
    """What waits in a table with these files, oldest first."""
    unmerged = Unmerged()
    for file in live:
        unmerged = unmerged.with_file(file)
    return unmerged


def plan(files: Sequence[DataFile]) -> list[Merge]:
    """The merges to do now, in order, none overlapping; `files` are the live ones, oldest first.

    Small neighbours are merged when they are many, or large enough together, or can't become more.
    """
    return [merge for run in runs(files) for merge in _worthwhile(files, run)]


def runs(files: Sequence[DataFile]) -> Iterator[Merge]:
    """The longest runs of neighbours that may be merged."""
    start = 0
    for number in range(len(files) + 1):
        if number == len(files) or not _is_small(files[number]):
            if number > start:
                yield Merge(start, number)
            start = number + 1


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
