"""Cuts for readers of many partitions: how far each may read so that it sees no part of a transaction
(docs/ARCHITECTURE.md, Cuts).

All APPLYs of a transaction are appended in one tick of the loop, so the next offsets of all partitions at one
tick divide none. They are a cut once all of them are visible; below it, `largest_cut` finds a smaller one.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from faircopy.copier.span_chunk import Span
from faircopy.datalog.log import OffsetOutOfRange
from faircopy.hosting.batch_ends import BatchEnds
from faircopy.hosting.largest_cut import Filled, Limit, Part, Steps, Turn, largest_cut
from faircopy.hosting.read_your_commits import catch_up, until_visible
from faircopy.loop.pace import Pace
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.participant import NotLed
from faircopy.storage.clock import Clock
from faircopy.storage.disk_pool import DiskPool

FROM_LOG_START = -1


class Reader(NamedTuple):
    """A partition, and the offset at which its reader is; FROM_LOG_START stands for the log's start."""

    partition: HostedPartition
    start_offset: int


class Range(NamedTuple):
    """What a reader may read of one partition: offsets from `start` on, below `end`."""

    start: int
    end: int


class Cuts:
    """Takes cuts. `is_whole()` says whether all partitions have a leader; if not, a cut might divide a
    transaction.
    """

    def __init__(self, disk: DiskPool, clock: Clock, is_whole: Callable[[], bool]) -> None:
        self._disk = disk
        self._clock = clock
        self._is_whole = is_whole
        self._turns = 0

    async def take(self, readers: Sequence[Reader], limit: Limit, pace: Pace) -> list[Range]:
        """The largest cut below a limit. Without one, it has everything that was acknowledged before.

        Raises NotLed, NotCaughtUp, OffsetOutOfRange, or what has stopped a partition.
        """
        parts: list[PartOfLog] = []
        async for reader in pace.over(readers):
            await catch_up(reader.partition, self._clock)
        ends = self._ends_now(readers)
        async for (partition, _), end in pace.over(zip(readers, ends, strict=True)):
            await until_visible(partition, end, self._clock)
            partition.ensure_readable()
        ranges = await ranges_of(readers, ends, pace)
        async for reader, each in pace.over(zip(readers, ranges, strict=True)):
            parts.append(PartOfLog(reader.partition, each))
        steps = largest_cut(await pace.each(PartOfLog.part, parts), limit, self._next_turn(len(parts)))
        found = await self._run(steps, parts, pace)
        await ranges_of(readers, found, pace)  # what retention has deleted meanwhile is no part of a cut
        both = zip(ranges, found, strict=True)
        return await pace.each(lambda each: Range(each[0].start, each[1]), both)

    def _ends_now(self, readers: Sequence[Reader]) -> list[int]:
        """The next offsets of all partitions, at one tick."""
        if not self._is_whole():
            raise NotLed("a shard has no leader now, so transactions may be half applied: try again")
        return [partition.state.next_offset for partition, _ in readers]

    def _next_turn(self, partitions: int) -> Turn:
        self._turns += 1
        chance = Random(self._turns)
        return Turn(chance.randrange(max(partitions, 1)), chance.random() < 0.5)

    async def _run(self, steps: Steps, parts: Sequence[PartOfLog], pace: Pace) -> list[int]:
        answer: Filled | None = None
        async for _ in pace.over(itertools.count()):
            try:
                step = steps.send(answer)
            except StopIteration as done:
                ends: list[int] = done.value
                return ends
            answer = await parts[step.number].batches.fill(step, self._disk) if step is not None else None
        raise AssertionError("the steps end")


async def ranges_of(readers: Sequence[Reader], ends: Sequence[int], pace: Pace) -> list[Range]:
    """The offsets of readers up to these ends. Raises OffsetOutOfRange."""
    return await pace.each(lambda each: range_of(*each), zip(readers, ends, strict=True))


def range_of(reader: Reader, end: int) -> Range:
    """The offsets of a reader up to an end. Raises OffsetOutOfRange."""
    log_start = reader.partition.log.start_offset
    start = log_start if reader.start_offset == FROM_LOG_START else reader.start_offset
    if not log_start <= start <= end:
        raise OffsetOutOfRange(f"offset {start} of {reader.partition.name} is outside {log_start} to {end}")
    return Range(start, end)


class PartOfLog:
    """One partition's part of a cut."""

    def __init__(self, partition: HostedPartition, within: Range) -> None:
        self._spans = partition.copier.spans
        self._within = within
        self._piece: deque[Span] = deque()
        self.batches = BatchEnds(partition.log)

    def part(self) -> Part:
        """What `largest_cut` needs."""
        return Part(*self._within, self._next_span, self.batches.bytes_up_to)

    def _next_span(self, offset: int) -> Span | None:
        while self._piece and self._piece[0].last_offset < offset:
            self._piece.popleft()
        if not self._piece:
            self._piece.extend(self._spans.piece(offset, self._within.end))
        return self._piece[0] if self._piece else None
