"""The largest cut below a limit, against one that tries all ranks."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from faircopy.copier.span_chunk import Span
from faircopy.hosting import largest_cut
from faircopy.hosting.largest_cut import UNLIMITED, Batches, Filled, Limit, Part, Turn
from faircopy.journal.entry import NO_TRANSACTION

PARTITIONS = 3
BYTES_A_ROW = 10


class Placed(NamedTuple):
    """A batch in a log; `rank` is None if it is of no transaction."""

    offset: int
    end: int
    rank: int | None


class Log:
    """The batches of one partition, and where its reader is."""

    def __init__(self) -> None:
        self.batches: list[Placed] = []
        self.end = 0

    def append(self, rows: int, rank: int | None) -> None:
        self.batches.append(Placed(self.end, self.end + rows, rank))
        self.end += rows

    def spans(self) -> list[Span]:
        """Of each rank one, or two if batches of no transaction are between them."""
        found: list[Span] = []
        for batch in self.batches:
            if batch.rank is None:
                continue
            if found and found[-1].rank == batch.rank and found[-1].end_offset == batch.offset:
                found[-1] = found[-1]._replace(last_offset=batch.end - 1)
            else:
                found.append(Span(batch.offset, batch.end - 1, batch.rank, NO_TRANSACTION))
        return found

    def part(self, start: int) -> Part:
        spans = self.spans()

        def next_span(offset: int) -> Span | None:
            while spans and spans[0].last_offset < offset:
                spans.pop(0)
            return spans[0] if spans else None

        return Part(start, self.end, next_span, lambda offset: offset * BYTES_A_ROW)

    def fill(self, step: Batches) -> Filled:
        last = min(step.end, step.offset + max(step.rows, step.at_least_one))
        end = step.offset
        for batch in self.batches:
            upto = min(batch.end, last)
            is_first = step.at_least_one and end == step.offset
            if upto > end and (is_first or (upto - step.offset) * BYTES_A_ROW <= step.size):
                end = upto
        return Filled(end, (end - step.offset) * BYTES_A_ROW)

    def next_plain_end(self, offset: int, limit: Limit) -> int | None:
        """Where the next row ends, if it is of no transaction, or its batch, if bytes are limited."""
        found = (each for each in self.batches if each.offset <= offset < each.end and each.rank is None)
        batch = next(found, None)
        if batch is None:
            return None
        return offset + 1 if limit.size == UNLIMITED else batch.end


transactions = st.dictionaries(
    st.integers(0, PARTITIONS - 1), st.lists(st.integers(1, 5), min_size=1, max_size=2), min_size=1
)
plain = st.tuples(st.integers(0, PARTITIONS - 1), st.integers(1, 5))
histories = st.lists(transactions | plain, max_size=20)
limits = st.builds(Limit, st.integers(0, 40), st.integers(0, 400)) | st.builds(
    Limit, st.integers(0, 40), st.just(UNLIMITED)
)


FIRST_TURN = Turn(0, begins_with_plain=False)
turns = st.builds(Turn, st.integers(0, PARTITIONS - 1), st.booleans())


def logs_of(history: list[dict[int, list[int]] | tuple[int, int]]) -> list[Log]:
    logs = [Log() for _ in range(PARTITIONS)]
    for rank, each in enumerate(history):
        if isinstance(each, tuple):
            logs[each[0]].append(each[1], None)
        else:
            for number, batches in each.items():
                for rows in batches:
                    # Every third shares the rank of the one before it, as after a crash.
                    logs[number].append(rows, rank - (rank % 3 == 2))
    return logs


def cut_of(logs: list[Log], starts: list[int], limit: Limit, turn: Turn = FIRST_TURN) -> list[int]:
    steps = largest_cut.largest_cut(
        [log.part(start) for log, start in zip(logs, starts, strict=True)], limit, turn
    )
    answer: Filled | None = None
    while True:
        try:
            step = steps.send(answer)
        except StopIteration as done:
            ends: list[int] = done.value
            return ends
        answer = logs[step.number].fill(step) if step is not None else None


def ends_at_rank(logs: list[Log], starts: list[int], rank: int) -> list[int]:
    """Where all transactions up to a rank end, and what is before them."""
    return [
        max([start, *(each.end for each in log.batches if each.rank is not None and each.rank <= rank)])
        for log, start in zip(logs, starts, strict=True)
    ]


def fits(starts: list[int], ends: list[int], limit: Limit) -> bool:
    rows = sum(ends) - sum(starts)
    return rows <= limit.rows and rows * BYTES_A_ROW <= limit.size


def is_whole(logs: list[Log], starts: list[int], ends: list[int]) -> bool:
    """Whether the ends divide no rank, and no batch of one, of what is after the starts."""
    new = [
        (batch, end) for log, start, end in zip(logs, starts, ends, strict=True)
        for batch in log.batches if batch.end > start
    ]  # fmt: skip
    inside = {batch.rank for batch, end in new if batch.end <= end} - {None}
    outside = {batch.rank for batch, end in new if batch.end > end} - {None}
    divided = any(batch.rank is not None and batch.offset < end < batch.end for batch, end in new)
    return not divided and not inside & outside


@given(histories, limits, turns)
def test_it_is_the_largest_cut_that_fits(
    history: list[dict[int, list[int]] | tuple[int, int]], limit: Limit, turn: Turn
) -> None:
    logs, starts = logs_of(history), [0] * PARTITIONS
    ends = cut_of(logs, starts, limit, turn)
    assert is_whole(logs, starts, ends)
    if not fits(starts, ends, limit):
        assert is_least(logs, ends, limit)
        return
    if not turn.begins_with_plain:
        best = starts
        for rank in range(len(history)):
            at_rank = ends_at_rank(logs, starts, rank)
            best = at_rank if fits(starts, at_rank, limit) else best
        assert all(end >= least for end, least in zip(ends, best, strict=True))
    for number, log in enumerate(logs):
        after = log.next_plain_end(ends[number], limit)
        if after is not None:
            more = [after if each == number else end for each, end in enumerate(ends)]
            assert not fits(starts, more, limit), "more would fit"


def is_least(logs: list[Log], ends: list[int], limit: Limit) -> bool:
    """Whether there is only one batch of no transaction, of which no more rows than are allowed, or only the
    first transaction and what is before it.
    """
    taken = [
        (each, end) for log, end in zip(logs, ends, strict=True) for each in log.batches if each.offset < end
    ]
    ranks = {each.rank for log in logs for each in log.batches} - {None}
    first = min((each for each in ranks if each is not None), default=0)
    if ends == ends_at_rank(logs, [0] * PARTITIONS, first):
        return True
    return len(taken) == 1 and taken[0][0].rank is None and sum(ends) <= max(limit.rows, 1)


@given(
    st.lists(st.integers(1, 9), min_size=PARTITIONS, max_size=PARTITIONS), limits,
    st.integers(1, PARTITIONS),
)  # fmt: skip
def test_nobody_waits_for_ever(sizes: list[int], limit: Limit, plain: int) -> None:
    """Each partition always has more: some only transactions, others only batches of no transaction."""
    cuts, rows_max = 12, 10
    limit = Limit(min(limit.rows, rows_max), limit.size)
    history: list[dict[int, list[int]] | tuple[int, int]] = [
        (number, rows) if number < plain else {number: [rows]}
        for _ in range(cuts * rows_max)
        for number, rows in enumerate(sizes)
    ]
    logs, starts = logs_of(history), [0] * PARTITIONS
    for turn in (Turn(number % PARTITIONS, number // PARTITIONS % 2 == 0) for number in range(cuts)):
        starts = cut_of(logs, starts, limit, turn)
    assert min(starts) > 0


@given(histories, limits)
def test_readers_progress_to_the_end(
    history: list[dict[int, list[int]] | tuple[int, int]], limit: Limit
) -> None:
    logs, starts = logs_of(history), [0] * PARTITIONS
    for number in itertools.count():
        turn = Turn(number % PARTITIONS, number // PARTITIONS % 2 == 0)
        ends = cut_of(logs, starts, limit, turn)
        assert is_whole(logs, starts, ends)
        if ends == starts:
            break
        starts = ends
    assert starts == [log.end for log in logs]


@given(histories, limits, st.lists(st.integers(0, 100), min_size=PARTITIONS, max_size=PARTITIONS))
def test_the_rest_of_a_transaction_comes_whole(
    history: list[dict[int, list[int]] | tuple[int, int]], limit: Limit, wanted: list[int]
) -> None:
    """A reader may begin anywhere, even within a transaction."""
    logs = logs_of(history)
    starts = [
        max((each.offset for each in log.batches if each.offset <= offset), default=0)
        for log, offset in zip(logs, wanted, strict=True)
    ]
    assert is_whole(logs, starts, cut_of(logs, starts, limit))


def test_without_a_limit_it_is_everything() -> None:
    logs = logs_of([{0: [1], 1: [2]}, (2, 3)])
    assert cut_of(logs, [0, 0, 0], Limit(UNLIMITED)) == [1, 2, 3]
