"""The largest cut below a limit: ends of partitions that divide no transaction.

Ranks never fall in a partition, so all transactions up to some rank, with everything before them, are a cut:
each partition ends where its last transaction of that rank ends. The largest rank that fits is found by
merging the spans of all partitions. What is left of the limit goes to the messages of no transaction that
come next: a share for each partition, then the rest to one after the other, from any one on. A limit of rows
divides their batches, a limit of bytes does not.

At least one transaction, batch or row is taken, even above the limit, so that readers progress. And none
waits for ever, however much there is of others: one cut in two begins with batches of no transaction, for up
to half of the limit; the others begin with a transaction, even one above the limit.

Pure: a generator of steps. It needs no more spans than it takes, and no batches but those at the ends.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NamedTuple

from faircopy.copier.span_chunk import Span

UNLIMITED = 1 << 63

NextSpan = Callable[[int], Span | None]
"""The first span that has offsets from this one on; None if there is none below the partition's end. Ask for
growing offsets only.
"""
BytesUpTo = Callable[[int], int]
"""Roughly how many bytes there are below an offset; it never falls."""


class Part(NamedTuple):
    """One partition, from where its reader is to where all that is visible ends. The ends of all parts divide
    no transaction.
    """

    start: int
    end: int
    next_span: NextSpan
    bytes_up_to: BytesUpTo


class Limit(NamedTuple):
    """How many rows and bytes a cut may have."""

    rows: int = UNLIMITED
    size: int = UNLIMITED


class Batches(NamedTuple):
    """A step: find how far the messages of partition `number` go, from `offset` on and below `end`, of which
    there are at most `rows`, in whole batches of at most `size` bytes, or in all up to `rows`. With
    `at_least_one`, the batch at `offset` is taken in any case, as far as `rows` go, and its first row even
    without. Send back a `Filled`.
    """

    number: int
    offset: int
    end: int
    rows: int
    size: int
    at_least_one: bool = False


class Filled(NamedTuple):
    """Where these messages end, and their bytes."""

    end: int
    size: int


Step = Batches | None
"""None: nothing is needed, but others may take a turn."""
Steps = Generator[Step, Filled | None, list[int]]


class Turn(NamedTuple):
    """What comes first in a cut. Choose both by chance, not by counting: one of several readers may get only
    the even turns.

    `first`: the partition that is the first to get what is left.
    """

    first: int
    begins_with_plain: bool


def largest_cut(parts: Sequence[Part], limit: Limit, turn: Turn) -> Steps:
    """The ends of the largest cut."""
    if limit == Limit():
        return [part.end for part in parts]
    cut = GrowingCut(parts, limit)
    numbers = [*range(turn.first, len(parts)), *range(turn.first)]
    yield from cut.look_at_all()
    if turn.begins_with_plain:
        yield from cut.begin_with_plain(numbers)
    yield from cut.take_transactions(at_least_one=not turn.begins_with_plain)
    yield from cut.share_among(numbers)
    yield from cut.give_rest_to(numbers)
    if cut.is_empty:
        yield from cut.take_one(numbers)
    return cut.ends


class GrowingCut:
    """A cut as far as it is found. `ends` divide no transaction. Up to `gap_ends`, messages are of none."""

    def __init__(self, parts: Sequence[Part], limit: Limit) -> None:
        self._parts = parts
        self._left = limit
        self.ends = [part.start for part in parts]
        self.gap_ends = [part.end for part in parts]
        self._heads: list[tuple[int, int, Span]] = []  # by rank: of each partition, the next span
        self._next: list[Span | None] = [None for _ in parts]
        self._too_large: dict[int, int] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing is taken yet."""
        return all(end == part.start for end, part in zip(self.ends, self._parts, strict=True))

    # -- transactions ----------------------------------------------------------------------------------------

    def look_at_all(self) -> Iterator[None]:
        """Look at the first transaction of each partition. Call it first."""
        for number, part in enumerate(self._parts):
            self._look_on(number, part.start)
            self._note_gap(number)
            yield

    def take_transactions(self, *, at_least_one: bool) -> Generator[None, None, None]:
        """Take all transactions up to the largest rank that fits; the first one may be above the limit."""
        is_wanted = at_least_one
        while self._heads:
            ends = yield from self._lowest_unit()
            rows, size = yield from self._sizes(ends)
            if not is_wanted and (rows > self._left.rows or size > self._left.size):
                self._too_large = ends
                break
            self._take(ends, rows, size)
            is_wanted = False
            yield

    def _look_on(self, number: int, offset: int) -> None:
        span = self._next[number] = self._parts[number].next_span(offset)
        if span is not None:
            heapq.heappush(self._heads, (span.rank, number, span))

    def _note_gap(self, number: int) -> None:
        span = self._next[number]
        self.gap_ends[number] = (
            self._parts[number].end if span is None else max(span.first_offset, self.ends[number])
        )

    def _lowest_unit(self) -> Generator[None, None, dict[int, int]]:
        """Where partitions end with the transactions of the lowest rank. They are looked past."""
        rank, ends = self._heads[0][0], dict[int, int]()
        while self._heads and self._heads[0][0] == rank:
            _, number, span = heapq.heappop(self._heads)
            ends[number] = span.end_offset
            self._look_on(number, span.end_offset)
            yield
        return ends

    def _sizes(self, ends: dict[int, int]) -> Generator[None, None, tuple[int, int]]:
        """The rows and bytes that these ends would add."""
        rows = sum(end - self.ends[number] for number, end in ends.items())
        size = 0
        if self._left.size != UNLIMITED:
            for number, end in ends.items():
                size += self._size_of(number, end)
                yield
        return rows, size

    def _size_of(self, number: int, end: int) -> int:
        bytes_up_to = self._parts[number].bytes_up_to
        return bytes_up_to(end) - bytes_up_to(self.ends[number])

    def _take(self, ends: dict[int, int], rows: int, size: int) -> None:
        self._use(rows, size)
        for number, end in ends.items():
            self.ends[number] = end
            self._note_gap(number)

    def _use(self, rows: int, size: int) -> None:
        left = self._left
        self._left = Limit(
            UNLIMITED if left.rows == UNLIMITED else left.rows - rows,
            UNLIMITED if left.size == UNLIMITED else left.size - size,
        )

    # -- batches of no transaction ---------------------------------------------------------------------------

    def begin_with_plain(self, numbers: Sequence[int]) -> Generator[Step, Filled | None, None]:
        """Give the first of these partitions a batch, even if it has too many bytes, and all of them half of
        the limit.
        """
        kept = Limit(*(0 if each == UNLIMITED else each // 2 for each in self._left))
        self._use(*kept)
        yield from self._take_first_batch(numbers)
        yield from self.share_among(numbers)
        self._use(-kept.rows, -kept.size)

    def share_among(self, numbers: Sequence[int]) -> Generator[Step, Filled | None, None]:
        """Give each of these partitions an equal share of what is left, as far as it has batches."""
        if min(self._left) <= 0:
            return
        waiting = sorted(self._with_gaps(numbers), key=lambda each: self.gap_ends[each] - self.ends[each])
        for taken, number in enumerate(waiting):
            sharers = len(waiting) - taken
            rows, size = (left if left == UNLIMITED else max(left, 0) // sharers for left in self._left)
            yield from self._fill(number, rows, size)

    def give_rest_to(self, numbers: Sequence[int]) -> Generator[Step, Filled | None, None]:
        """Give what is left to these partitions, in order."""
        for number in self._with_gaps(numbers):
            if min(self._left) <= 0:
                return
            yield from self._fill(number, *self._left)

    def _with_gaps(self, numbers: Sequence[int]) -> list[int]:
        return [number for number in numbers if self.ends[number] < self.gap_ends[number]]

    def _fill(
        self, number: int, rows: int, size: int, *, at_least_one: bool = False
    ) -> Generator[Step, Filled | None, None]:
        offset, end = self.ends[number], self.gap_ends[number]
        filled = yield Batches(number, offset, end, rows, size, at_least_one)
        assert filled is not None
        self._use(filled.end - offset, filled.size)
        self.ends[number] = filled.end

    # -- progress --------------------------------------------------------------------------------------------

    def take_one(self, numbers: Sequence[int]) -> Generator[Step, Filled | None, None]:
        """Nothing fits: take the first batch, or if there is none, the first transaction."""
        yield from self._take_first_batch(numbers)
        if self.is_empty:
            self._take(self._too_large, 0, 0)

    def _take_first_batch(self, numbers: Sequence[int]) -> Generator[Step, Filled | None, None]:
        for number in self._with_gaps(numbers)[:1]:
            yield from self._fill(number, max(self._left.rows, 0), 0, at_least_one=True)
