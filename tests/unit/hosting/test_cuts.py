"""Cuts of logs that are not visible up to their tails, that have a past without spans, that are trimmed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

import pytest

from faircopy.copier.span_chunk import Span
from faircopy.datalog.log import OffsetOutOfRange
from faircopy.hosting.cuts import FROM_LOG_START, Cuts, Range, Reader
from faircopy.hosting.largest_cut import Limit
from faircopy.journal.entry import NO_TRANSACTION
from faircopy.loop.pace import NO_PACE, NoPace, Pace
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.participant import NotLed
from faircopy.storage.clock import SteadyClock, SystemClock
from tests.simulation.loop import VirtualLoop

SMALL = Limit(rows=1)

Item = TypeVar("Item")
Made = TypeVar("Made")


class StubPartition:
    """A partition and all its parts, as far as cuts need them. It has batches of one message.

    `applied` are the (first offset, last offset, rank) of transactions.
    """

    def __init__(self, end: int, visible: int, applied: list[tuple[int, int, int]]) -> None:
        self.name, self.failure, self.prepared = "t-0", None, set[Any]()
        self.state = self.log = self.copier = self.spans = self.sink = self.journal = self
        self.is_stuck = self.waits_for_space = False
        self.next_offset, self.end_offset, self.start_offset = end, visible, 0
        self.segments: list[Any] = []
        self._applied = [Span(*each, NO_TRANSACTION) for each in applied]

    def ensure_readable(self) -> None:
        pass

    def piece(self, first_offset: int, end_offset: int) -> list[Span]:
        """One span at a time, as if each were a chunk."""
        spans: Iterator[Span] = (
            span
            for span in self._applied
            if span.last_offset >= first_offset and span.first_offset < end_offset
        )
        return list(spans)[:1]


def take(
    partitions: list[StubPartition],
    limit: Limit,
    starts: list[int] | None = None,
    later: Callable[[], None] = lambda: None,
    *,
    is_whole: bool = True,
    pace: Pace = NO_PACE,
) -> list[Range]:
    """A cut. `later` is called while it waits."""
    loop = VirtualLoop()

    async def main() -> list[Range]:
        loop.call_later(0.01, later)
        cuts = Cuts(cast(Any, None), SteadyClock(SystemClock()), lambda: is_whole)
        readers = [
            Reader(cast(HostedPartition, partition), start)
            for partition, start in zip(partitions, starts or [0] * len(partitions), strict=True)
        ]
        return await cuts.take(readers, limit, pace)

    with contextlib.closing(loop):
        return loop.run(main())


def show_all(*partitions: StubPartition) -> None:
    for partition in partitions:
        partition.end_offset = partition.next_offset


@pytest.mark.parametrize("limit", [Limit(), SMALL])
def test_a_cut_waits_until_it_is_visible(limit: Limit) -> None:
    """At any moment, one partition may show its part of a transaction and another not."""
    partitions = [StubPartition(2, 2, [(0, 1, 5)]), StubPartition(3, 0, [(0, 2, 5)])]
    assert take(partitions, limit, later=lambda: show_all(*partitions)) == [Range(0, 2), Range(0, 3)]


def test_the_start_of_a_log_is_found() -> None:
    partition = StubPartition(9, 9, [(2, 8, 1)])
    partition.start_offset = 4
    assert take([partition], SMALL, [FROM_LOG_START]) == [Range(4, 9)]


@pytest.mark.parametrize("start", [1, 10])
def test_a_reader_outside_the_log_is_told(start: int) -> None:
    partition = StubPartition(9, 9, [])
    partition.start_offset = 2
    with pytest.raises(OffsetOutOfRange):
        take([partition], SMALL, [start])


def test_what_is_trimmed_meanwhile_is_no_cut() -> None:
    partition = StubPartition(9, 0, [(0, 8, 1)])

    def trim() -> None:
        partition.start_offset = 3
        show_all(partition)

    with pytest.raises(OffsetOutOfRange):
        take([partition], SMALL, later=trim)


def test_without_a_leader_there_is_no_cut() -> None:
    with pytest.raises(NotLed):
        take([StubPartition(9, 9, [])], SMALL, is_whole=False)


class LookedAt(StubPartition):
    """A partition that counts how often somebody looks where its log starts."""

    looks = 0

    @property
    def start_offset(self) -> int:
        LookedAt.looks += 1
        return 0

    @start_offset.setter
    def start_offset(self, _offset: int) -> None:
        pass


class CountingPace(NoPace):
    """Counts the looks between two places where others could have their turn."""

    def __init__(self) -> None:
        self.most = 0

    def _pause(self) -> None:
        self.most = max(self.most, LookedAt.looks)
        LookedAt.looks = 0

    async def through(self, items: Iterable[Item]) -> AsyncIterator[Item]:
        for item in items:
            self._pause()
            yield item
        self._pause()

    async def each(self, work: Callable[[Item], Made], items: Iterable[Item]) -> list[Made]:
        return [work(item) async for item in self.through(items)]


@pytest.mark.parametrize("limit", [Limit(), SMALL, Limit(rows=50)])
def test_others_have_their_turns_while_a_cut_of_many_partitions_is_taken(limit: Limit) -> None:
    """60,000 of them, or one so often, held up the loop for a second."""
    pace = CountingPace()
    LookedAt.looks = 0
    partitions: list[StubPartition] = [LookedAt(3, 3, [(0, 2, 5)]) for _ in range(200)]
    assert len(take(partitions, limit, pace=pace)) == 200
    assert 0 < pace.most < 10
