"""Where transactions stand in one partition's log, from the log's start on (`span_chunk`).

Readers of many partitions need this to take whole transactions, and to know the name of each.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import chain, takewhile
from typing import NamedTuple

from faircopy.copier.fold import CopyTransaction
from faircopy.copier.span_chunk import CHUNK_SPANS_MAX, Span, chunk_key, decode_chunk, encode_chunk
from faircopy.storage.state_store import Change, DeleteRange, Put, StateStore

OFFSET_MAX = (1 << 64) - 1


class SpanChunk(NamedTuple):
    """Spans as they are stored, and where the first one begins."""

    first_offset: int
    value: bytes

    @classmethod
    def of(cls, spans: list[Span]) -> SpanChunk:
        """The chunk of these spans."""
        return cls(spans[0].first_offset, encode_chunk(spans))


class Spans:
    """The spans of one partition: in the state store up to the last checkpoint, and in memory since then."""

    def __init__(self, identity: bytes, store: StateStore) -> None:
        self._identity = identity
        self._store = store
        self._storing: list[SpanChunk] = []  # in a checkpoint that is not known to be stored
        self._whole: list[SpanChunk] = []
        self._recent: list[Span] = []

    def note(self, effect: CopyTransaction) -> None:
        """A transaction is being copied."""
        if not effect.records:
            return
        last_offset = effect.base_offset + effect.records - 1
        self._recent.append(Span(effect.base_offset, last_offset, effect.rank, effect.lead))
        if len(self._recent) == CHUNK_SPANS_MAX:
            self._close_chunk()

    def _close_chunk(self) -> None:
        if self._recent:
            self._whole.append(SpanChunk.of(self._recent))
            self._recent = []

    # -- reading ---------------------------------------------------------------------------------------------

    def between(self, first_offset: int, end_offset: int) -> Iterator[Span]:
        """The spans that have offsets from `first_offset` on and below `end_offset`, in order. Take them
        before the next turn of the loop.
        """
        spans = chain.from_iterable(self._pieces(first_offset, end_offset))
        reached = (span for span in spans if span.last_offset >= first_offset)
        return takewhile(lambda span: span.first_offset < end_offset, reached)

    def piece(self, first_offset: int, end_offset: int) -> list[Span]:
        """The first of these spans: as many as are found at once. None means that there are no more."""
        for spans in self._pieces(first_offset, end_offset):
            found = [
                span for span in spans if first_offset <= span.last_offset and span.first_offset < end_offset
            ]
            if found:
                return found
        return []

    def _pieces(self, first_offset: int, end_offset: int) -> Iterator[list[Span]]:
        pending = [*self._storing, *self._whole]
        held_from = pending[0].first_offset if pending else self._recent_from
        yield from self._stored(first_offset, min(held_from, end_offset))
        for number, chunk in enumerate(pending):
            following = pending[number + 1].first_offset if number + 1 < len(pending) else self._recent_from
            if first_offset < following and chunk.first_offset < end_offset:
                yield decode_chunk(chunk.value)
        yield self._recent[max(bisect_left(self._recent, (first_offset + 1,)) - 1, 0) :]

    @property
    def _recent_from(self) -> int:
        return self._recent[0].first_offset if self._recent else OFFSET_MAX

    def _stored(self, first_offset: int, held_from: int) -> Iterator[list[Span]]:
        """Spans in the store. One that a checkpoint is storing is in memory as well, from `held_from` on."""
        wanted = chunk_key(self._identity, first_offset)
        floor = self._store.floor("spans", self._identity, wanted)
        for key, value in self._store.scan("spans", self._identity, floor[0] if floor else wanted):
            if key >= chunk_key(self._identity, held_from):
                return
            yield decode_chunk(value)

    # -- checkpoints -----------------------------------------------------------------------------------------

    def checkpoint(self) -> list[Change]:
        """The changes that a checkpoint has to store. Memory keeps them until `stored`."""
        if not (self._storing or self._whole) and self._recent:
            self._recent = [*self._small_last_chunk(), *self._recent]
        self._close_chunk()
        self._storing += self._whole
        self._whole = []
        return [Put("spans", chunk_key(self._identity, first), value) for first, value in self._storing]

    def _small_last_chunk(self) -> list[Span]:
        """The spans of the last stored chunk, if the recent ones fit in: it is replaced."""
        last = self._store.floor("spans", self._identity, chunk_key(self._identity, OFFSET_MAX))
        spans = decode_chunk(last[1]) if last is not None else []
        return spans if len(spans) + len(self._recent) <= CHUNK_SPANS_MAX else []

    def stored(self) -> None:
        """The last checkpoint is stored."""
        self._storing = []

    def trim(self, start_offset: int) -> Change:
        """The change that drops the chunks wholly below an offset, except the last one."""
        key = chunk_key(self._identity, start_offset)
        floor = self._store.floor("spans", self._identity, key)
        end = floor[0] if floor is not None else chunk_key(self._identity, 0)
        return DeleteRange("spans", chunk_key(self._identity, 0), end)
