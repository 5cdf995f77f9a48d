"""What a table drops: rows that their topic no longer keeps.

A *unit* is a merged file with the small files that it covers, or a file that none covers. A unit is dropped
when all its rows are past keeping, as a log is trimmed by whole segments. What a unit holds is in the Delta
log: up to which offset it goes in each of its partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from faircopy.publish import names
from faircopy.publish.offsets import NextOffsets
from faircopy.publish.spark_log import DataFile

HOUR_MS = 3_600_000
FOREVER_MS = -1


class Keep(NamedTuple):
    """What a table keeps of a topic: offsets from `first_offsets` of its partitions on (all, of those that
    are not named), and nothing that was published more than `age_ms` ago (FOREVER_MS: whatever its age).
    """

    topic: str
    first_offsets: Mapping[int, int] = {}
    age_ms: int = FOREVER_MS


class Upkeep(NamedTuple):
    """What a table keeps. Of topics that `keeps` does not name, nothing; files that were dropped stay on disk
    for the grace, which must exceed the duration of any batch query.
    """

    keeps: tuple[Keep, ...]
    grace_ms: int = HOUR_MS


class Unit(NamedTuple):
    """Files with the same rows, the merged one first if there is one. `since_ms` is when the newest of them
    was published.
    """

    files: tuple[DataFile, ...]
    since_ms: int

    @property
    def name(self) -> str:
        """The file that has all rows, which batch reads take."""
        return self.files[0].name


def units(live: Sequence[DataFile]) -> list[Unit]:
    """The units of a table's live files, oldest first, without the file that has no rows."""
    return [Unit(tuple(group), group[-1].modified_ms) for group in _groups(live)]


def _groups(live: Sequence[DataFile]) -> Iterator[list[DataFile]]:
    group: list[DataFile] = []
    for file in live:
        if names.is_schema(file.name):
            continue
        if group and not (file.is_covered and names.is_merged(group[0].name)):
            yield group
            group = []
        group.append(file)
    if group:
        yield group


def is_past_keeping(ends: NextOffsets, unit: Unit, keeps: Mapping[str, Keep], now_ms: int) -> bool:
    """Whether no row is kept of a unit that goes up to `ends`."""
    age_ms = now_ms - unit.since_ms
    return all(_is_past(partitions, age_ms, keeps.get(topic)) for topic, partitions in ends.items())


def _is_past(ends: Mapping[int, int], age_ms: int, keep: Keep | None) -> bool:
    if keep is None or age_ms > keep.age_ms != FOREVER_MS:
        return True
    return all(end <= keep.first_offsets.get(partition, 0) for partition, end in ends.items())
