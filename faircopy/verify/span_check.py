"""Compares the spans of transactions in the state store with a log's batches and with the fold (I1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from faircopy.copier.checkpoint import NO_CHECKPOINT, Checkpoint
from faircopy.copier.fold import CopyTransaction
from faircopy.copier.span_chunk import Span, decode_chunk
from faircopy.storage.state_store import StateStore
from faircopy.wire.batch import BatchHeader


def stored_spans(store: StateStore, identity: bytes) -> list[Span]:
    """All spans of a partition in the state store. Raises DamagedState, BadChunk."""
    return [span for _, value in store.scan("spans", identity) for span in decode_chunk(value)]


class SpanCheck:
    """The check of one partition's spans, from where the log starts to the checkpoint."""

    def __init__(self, spans: Iterable[Span], checkpoint: Checkpoint | None) -> None:
        stored = checkpoint if checkpoint is not None else NO_CHECKPOINT
        self._end = stored.next_offset
        self._first = first = stored.start_offset
        self._spans = [span for span in spans if span.last_offset >= first]
        self._folded: list[Span] = []
        self._at = 0

    def faults(self) -> Iterator[str]:
        """Faults of the spans by themselves."""
        for one, other in pairwise(self._spans):
            if one.end_offset > other.first_offset:
                yield f"the spans of {one.transaction} and {other.transaction} overlap"
            if one.rank > other.rank:
                yield f"the rank falls from {one.transaction} to {other.transaction}"
        for span in self._spans:
            if not span.first_offset <= span.last_offset < self._end:
                yield f"the span of {span.transaction} ends with offset {span.last_offset}"

    def fault_of(self, header: BatchHeader) -> str | None:
        """Whether a batch is as the spans have it: wholly in one if it was a draft, otherwise in none. Call
        it in the order of the log.
        """
        if header.base_offset < self._first:
            return None
        while self._at < len(self._spans) and self._spans[self._at].last_offset < header.base_offset:
            self._at += 1
        span = self._spans[self._at] if self._at < len(self._spans) else None
        is_in = span is not None and span.first_offset <= header.base_offset
        limit = span.last_offset if span is not None and is_in else span.first_offset - 1 if span else None
        if limit is not None and header.last_offset > limit:
            return f"offset {header.base_offset} begins a batch that a span divides"
        if is_in == header.is_transactional:
            return None
        return f"offset {header.base_offset} is {'' if is_in else 'not '}in the span of a transaction"

    def folded(self, effect: CopyTransaction) -> None:
        """The journal has a transaction, and is folded from its beginning."""
        end_offset = effect.base_offset + effect.records
        span = Span(effect.base_offset, end_offset - 1, effect.rank, effect.lead)
        if end_offset <= self._end and span.first_offset >= self._first:
            self._folded.append(span)

    def difference(self) -> str | None:
        """The first difference between the spans and those that were folded."""
        stored = [span for span in self._spans if span.first_offset >= self._first]
        for span in sorted({*stored} ^ {*self._folded}):
            whose = "the journal has" if span in self._folded else "the state store has"
            return f"I1: only {whose} transaction {span.transaction} from offset {span.first_offset} on"
        return None
