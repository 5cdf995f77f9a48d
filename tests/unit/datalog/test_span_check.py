"""What `verify` says of spans that are not those of the log."""

from __future__ import annotations

import pytest

from faircopy.copier.checkpoint import Checkpoint
from faircopy.copier.fold import CopyTransaction
from faircopy.copier.span_chunk import Span
from faircopy.journal.entry import TransactionId
from faircopy.verify.span_check import SpanCheck
from faircopy.wire.batch import read_header
from faircopy.wire.records import NewRecord, build_batch

ONE, OTHER = TransactionId(1, 0, 1), TransactionId(2, 0, 1)
SOUND = [Span(2, 5, 7, ONE), Span(6, 7, 8, OTHER)]
BATCHES = [(0, 2, False), (2, 2, True), (4, 2, True), (6, 2, True), (8, 2, False)]
CHECKPOINT = Checkpoint(0, 0, 10, 0, 100)


def faults(spans: list[Span], checkpoint: Checkpoint = CHECKPOINT) -> list[str]:
    check = SpanCheck(spans, checkpoint)
    found = []
    for offset, records, is_draft in BATCHES:
        batch = build_batch(
            [NewRecord(b"v")] * records, base_offset=offset, producer_id=1, transactional=is_draft
        )
        found.append(check.fault_of(read_header(batch)))
    for span in SOUND:
        records = span.end_offset - span.first_offset
        check.folded(
            CopyTransaction(ONE, 0, span.first_offset, 1, records, 1, 1, span.rank, span.transaction)
        )
    return [*filter(None, found), *check.faults(), *filter(None, [check.difference()])]


def test_sound_spans_have_no_faults() -> None:
    assert faults(SOUND) == []


@pytest.mark.parametrize(
    ("spans", "fault"),
    [
        (SOUND[:1], "not in the span"),
        (SOUND[1:], "not in the span"),
        ([*SOUND, Span(8, 9, 9, ONE)], "in the span"),
        ([Span(2, 4, 7, ONE), Span(5, 7, 8, OTHER)], "divides"),
        ([Span(2, 6, 7, ONE), Span(6, 7, 8, OTHER)], "overlap"),
        ([Span(2, 5, 9, ONE), Span(6, 7, 8, OTHER)], "rank falls"),
        ([*SOUND, Span(10, 11, 9, ONE)], "ends with offset 11"),
        ([Span(2, 7, 7, ONE)], "only the"),
        ([SOUND[0]._replace(transaction=OTHER), SOUND[1]], "I1: only the"),
    ],
)
def test_faults_are_found(spans: list[Span], fault: str) -> None:
    assert any(fault in each for each in faults(spans))
