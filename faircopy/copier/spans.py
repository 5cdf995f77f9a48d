"""Where transactions stand in one partition's log. Plain tables need this to publish whole transactions."""

from __future__ import annotations

from faircopy.copier.checkpoint import Span, decode_span, encode_span, span_key
from faircopy.copier.fold import CopyTransaction
from faircopy.storage.state_store import Change, DeleteRange, StateStore

NONE_WANTED = (1 << 63) - 1
"""The first offset whose spans are wanted, for a log that is not published: beyond all offsets."""


class Spans:
    """The spans of one partition: in the state store up to the last checkpoint, and in memory since then."""

    def __init__(self, identity: bytes, store: StateStore) -> None:
        self._identity = identity
        self._store = store
        self._recent: list[Span] = []
        self._wanted_from = 0

    def want(self, first_offset: int) -> None:
        """Keep only spans that end at this offset or later, now and for later transactions. Published offsets
        need no spans, and each transaction has one.
        """
        self._wanted_from = first_offset
        self._recent = [span for span in self._recent if span.last_offset >= first_offset]

    def note(self, effect: CopyTransaction) -> None:
        """A transaction is being copied."""
        end_offset = effect.base_offset + effect.records
        if end_offset > self._wanted_from:
            self._recent.append(Span(effect.base_offset, end_offset - 1, effect.transaction))

    def between(self, first_offset: int, end_offset: int) -> list[Span]:
        """The spans of the transactions between these offsets, in order."""
        stored = self._store.scan("spans", self._identity, span_key(self._identity, first_offset))
        found = [decode_span(key, value) for key, value in stored]
        # A span that a checkpoint has just stored may still be in memory as well.
        spans = {span.first_offset: span for span in [*found, *self._recent]}
        return sorted(span for span in spans.values() if first_offset <= span.first_offset < end_offset)

    def checkpoint(self) -> list[Change]:
        """The changes that a checkpoint has to store."""
        first, end = span_key(self._identity, 0), span_key(self._identity, self._wanted_from)
        return [
            DeleteRange("spans", first, end),
            *(encode_span(self._identity, span) for span in self._recent),
        ]

    def stored(self, end_offset: int) -> None:
        """The spans of transactions before this offset are in the store."""
        self._recent = [span for span in self._recent if span.first_offset >= end_offset]
