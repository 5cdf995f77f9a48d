"""What to merge, what to delete, and how often to publish, so that a table stays fast to read.

Spark parses a table's log at each trigger, so small files must be merged into large ones. But a stream may
still have to read the small ones: if it lags by more than the *horizon*, it loses rows silently, since it
skips merged files. So only files older than the horizon are merged. The small files stay on disk for the
*grace* after the merge, for readers that planned to read them.

Files belong to tiers by size. Neighbouring files are merged when together they reach the next tier, or are
many, or can't become more; so each byte is rewritten about once for each tier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from faircopy.publish.spark_log import DataFile

MEBIBYTE = 1024 * 1024
DAY_MS = 86_400_000

TIER_BYTES = (
    1 * MEBIBYTE,
    16 * MEBIBYTE,
    128 * MEBIBYTE,
)  # a file as large as the last is never merged again
MANY_FILES = 64
BYTES_AT_ONCE = 512 * MEBIBYTE  # publications wait while files are merged


class Upkeep(NamedTuple):
    """Settings of a table's upkeep. Horizon and grace must exceed the longest lag of any stream or query."""

    horizon_days: float = 1.0
    grace_days: float = 3.0
    files_at_most: int = 10_000

    @property
    def horizon_ms(self) -> int:
        """The horizon in milliseconds."""
        return int(self.horizon_days * DAY_MS)

    @property
    def grace_ms(self) -> int:
        """The grace in milliseconds."""
        return int(self.grace_days * DAY_MS)


class Merge(NamedTuple):
    """Merge the live files from number `start` to before `stop` into one."""

    start: int
    stop: int


def plan(files: Sequence[DataFile], now_ms: int, upkeep: Upkeep) -> list[Merge]:
    """The merges to do now, in order, none overlapping; `files` are the live ones, oldest first."""
    settled = settled_files(files, now_ms, upkeep)
    sizes = [file.size for file in files[:settled]]
    planned: list[Merge] = []
    for tier_bytes in TIER_BYTES:
        taken = {number for merge in planned for number in range(*merge)}
        for run in _runs(sizes, tier_bytes, taken):
            planned.extend(_worthwhile(sizes, run, tier_bytes))
    return _affordable(sizes, sorted(planned))


def settled_files(files: Sequence[DataFile], now_ms: int, upkeep: Upkeep) -> int:
    """How many of the oldest live files are older than the horizon."""
    horizon_ms = now_ms - upkeep.horizon_ms
    return next((i for i, file in enumerate(files) if file.modified_ms >= horizon_ms), len(files))


def _runs(sizes: Sequence[int], tier_bytes: int, taken: set[int]) -> Iterator[Merge]:
    """The longest runs of neighbours that are smaller than the tier and that no merge has taken."""
    start = 0
    for number in range(len(sizes) + 1):
        if number == len(sizes) or number in taken or sizes[number] >= tier_bytes:
            if number > start:
                yield Merge(start, number)
            start = number + 1


def _worthwhile(sizes: Sequence[int], run: Merge, tier_bytes: int) -> Iterator[Merge]:
    """Parts of a run that are worth merging, each hardly larger than the largest tier."""
    for part in _parts(sizes, run):
        closed = part.stop < len(sizes) and sizes[part.stop] >= TIER_BYTES[-1]
        count = part.stop - part.start
        if count > 1 and (closed or count >= MANY_FILES or sum(sizes[slice(*part)]) >= tier_bytes):
            yield part


def _parts(sizes: Sequence[int], run: Merge) -> Iterator[Merge]:
    start, total = run.start, 0
    for number in range(*run):
        total += sizes[number]
        if total >= TIER_BYTES[-1]:
            yield Merge(start, number + 1)
            start, total = number + 1, 0
    if start < run.stop:
        yield Merge(start, run.stop)


def _affordable(sizes: Sequence[int], merges: Sequence[Merge]) -> list[Merge]:
    """The first merges, at least one, that together stay within BYTES_AT_ONCE."""
    chosen: list[Merge] = []
    total = 0
    for merge in merges:
        total += sum(sizes[slice(*merge)])
        if chosen and total > BYTES_AT_ONCE:
            break
        chosen.append(merge)
    return chosen


def expired(retired_ms: Mapping[str, int], now_ms: int, upkeep: Upkeep) -> list[str]:
    """The files that may be deleted, given when each was taken off the list."""
    return [name for name, since_ms in retired_ms.items() if since_ms + upkeep.grace_ms <= now_ms]


def pace_ms(files: int, upkeep: Upkeep) -> int:
    """How long to wait between publications, so that there are fewer than `files_at_most` live files.

    0 while there are fewer than half that many. From then on, at most 4 tenths more are added within one
    horizon, after which the first ones can be merged; the last tenth is for merges that come a little later.
    """
    if 2 * files < upkeep.files_at_most:
        return 0
    return upkeep.horizon_ms * 10 // (4 * upkeep.files_at_most)
