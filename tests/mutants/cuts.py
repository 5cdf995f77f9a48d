"""Mutants of spans and cuts: what readers of many partitions rely on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from faircopy.copier.span_chunk import chunk_key
from faircopy.copier.spans import Spans
from faircopy.storage.state_store import Change, DeleteRange
from tests.mutants.registry import mutant, replaced


@mutant
def lose_spans_at_a_checkpoint() -> Iterator[Any]:
    """Memory gives up spans that no checkpoint has stored."""
    real = Spans.checkpoint

    def checkpoint(self: Spans) -> list[Change]:
        changes = real(self)
        self.stored()
        return changes[1:]

    with replaced(Spans, "checkpoint", checkpoint):
        yield


@mutant
def trim_spans_of_the_log() -> Iterator[Any]:
    """A trim drops the chunk in which the log starts."""

    def trim(self: Spans, start_offset: int) -> Change:
        first, end = chunk_key(self._identity, 0), chunk_key(self._identity, start_offset + 1)
        return DeleteRange("spans", first, end)

    with replaced(Spans, "trim", trim):
        yield
