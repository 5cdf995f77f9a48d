"""Mutants of spans and cuts: what readers of many partitions rely on."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Any

from faircopy.copier.span_chunk import chunk_key
from faircopy.copier.spans import Spans
from faircopy.datalog.read import ReadPlan
from faircopy.hosting import batch_ends, cuts
from faircopy.hosting.cuts import Cuts, Reader
from faircopy.hosting.largest_cut import Batches, Filled, GrowingCut
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


@mutant
def cut_at_the_high_watermarks() -> Iterator[Any]:
    """What is visible at one tick is taken for a cut, although partitions copy at their own pace."""

    def ends_now(self: Cuts, readers: Sequence[Reader]) -> list[int]:
        return [reader.partition.log.end_offset for reader in readers]

    async def catch_up(*_arguments: Any) -> None:
        pass

    with replaced(Cuts, "_ends_now", ends_now), replaced(cuts, "catch_up", catch_up):
        yield


@mutant
def divide_what_does_not_fit() -> Iterator[Any]:
    """Of a transaction that does not fit as a whole, the partitions in which it fits are taken."""

    def lowest_unit(self: GrowingCut) -> dict[int, int]:
        _, number, span = heapq.heappop(self._heads)
        self._look_on(number, span.end_offset)
        return {number: span.end_offset}

    with replaced(GrowingCut, "_lowest_unit", lowest_unit):
        yield


@mutant
def pass_over_the_rest_of_a_batch() -> Iterator[Any]:
    """A reader that begins within a batch finds nothing of it."""
    real = batch_ends.fill_by_headers

    def fill_by_headers(plan: ReadPlan, step: Batches, begin: int, size: int) -> Filled:
        filled = real(plan, step, begin, size)
        return filled if plan.near.offset == begin else filled._replace(end=begin)

    with replaced(batch_ends, "fill_by_headers", fill_by_headers):
        yield
