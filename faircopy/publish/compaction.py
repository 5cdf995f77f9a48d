"""What to merge, so that a table is fast to read.

Batch reads take one large file where many small ones were published. Merging serves them alone: streams and
all readers that list the directory go on reading the small files, which stay as long as their rows live. So a
merge takes nothing from anybody, and can be done once and for all: what is merged is never merged again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from faircopy.publish import names
from faircopy.publish.spark_log import DataFile

MEBIBYTE = 1024 * 1024

MANY_FILES = 512  # at one publication in ten seconds they are those of 85 minutes
LARGE_BYTES = 64 * MEBIBYTE  # a file as large as this is left alone
MERGED_BYTES = 128 * MEBIBYTE


class Merge(NamedTuple):
    """Merge the live files from number `start` to before `stop` into one."""

    start: int
    stop: int


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
