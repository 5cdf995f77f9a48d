"""The spans of a log, against a list of them: over checkpoints that are stored or not, trims and restarts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.copier import spans as spans_module
from faircopy.copier.fold import CopyTransaction
from faircopy.copier.span_chunk import Span
from faircopy.copier.spans import Spans
from faircopy.journal.entry import TransactionId
from tests.fuzz.journals import new_store
from tests.simulation.store import Contents, SimulatedStore

IDENTITY, OTHER = bytes(20), b"\1" * 20
SMALL_CHUNK = 4


@pytest.fixture(autouse=True, scope="module")
def _small_chunks() -> Iterator[None]:
    with mock.patch.object(spans_module, "CHUNK_SPANS_MAX", SMALL_CHUNK):
        yield


class Log:
    """The spans of a log, and a list of those that there must be."""

    def __init__(self) -> None:
        self.store = cast(SimulatedStore, new_store(Contents()))
        self.spans = Spans(IDENTITY, self.store)
        self.all: list[Span] = []
        self.checkpointed = 0
        self.start = self.end = 0

    def apply(self, records: int) -> None:
        number = len(self.all)
        lead = TransactionId(1, 0, number // 2)
        effect = CopyTransaction(TransactionId(2, 0, number), 0, self.end, 1, records, 9, 1, number, lead)
        self.spans.note(effect)
        self.all.append(Span(self.end, self.end + records - 1, number, lead))
        self.end += records

    def plain(self, records: int) -> None:
        self.end += records

    def checkpoint(self, is_stored: int) -> None:
        changes = self.spans.checkpoint()
        during = is_stored // 2 % SMALL_CHUNK
        for _ in range(during):
            self.apply(1)
        if is_stored % 2:
            self.store._apply_all(changes)
            self.spans.stored()
            self.checkpointed = len(self.all) - during

    def trim(self, percent: int) -> None:
        below = self.all[self.checkpointed - 1].first_offset if self.checkpointed else 0
        self.start = max(self.start, below * percent // 100)
        self.store._apply_all([self.spans.trim(self.start)])

    def restart(self, _nothing: int) -> None:
        """The journal gives again what the checkpoint does not have."""
        del self.all[self.checkpointed :]
        self.end = self.all[-1].end_offset if self.all else 0
        self.spans = Spans(IDENTITY, self.store)

    def check(self, first: int, end: int) -> None:
        found = list(self.spans.between(first, end))
        assert found == [span for span in self.all if span.last_offset >= first and span.first_offset < end]


steps = st.lists(
    st.tuples(
        st.sampled_from([Log.apply, Log.apply, Log.apply, Log.plain, Log.checkpoint, Log.trim, Log.restart]),
        st.integers(1, 100),
    ),
    max_size=60,
)


@given(steps, st.integers(0, 100), st.integers(0, 100))
def test_spans_are_those_of_the_log(taken: list[tuple[object, int]], first: int, length: int) -> None:
    log = Log()
    for step, number in taken:
        step(log, number)  # type: ignore[operator]
        log.check(max(first, log.start), first + length)
        log.check(log.start, log.end)


def test_small_chunks_are_joined() -> None:
    """So a partition with few transactions between checkpoints does not get a record for each."""
    log = Log()
    for _ in range(3 * SMALL_CHUNK):
        log.apply(1)
        log.checkpoint(1)
    assert len(list(log.store.scan("spans", IDENTITY))) == 3


def test_a_trim_leaves_no_more_than_a_chunk() -> None:
    log = Log()
    for _ in range(3 * SMALL_CHUNK):
        log.apply(1)
    log.checkpoint(1)
    log.store._apply_all([Spans(OTHER, log.store).trim(100)])
    assert len(list(log.store.scan("spans", IDENTITY))) == 3
    log.store._apply_all([log.spans.trim(log.end)])
    assert len(list(log.store.scan("spans", IDENTITY))) == 1
