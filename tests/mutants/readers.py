"""Mutants that show readers what is old, or what is not whole."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from faircopy.api import list_offsets
from faircopy.groups.offsets_journals import OffsetsJournals
from faircopy.hosting.plain_tables import PlainTables
from tests.mutants.registry import mutant, replaced


@mutant
def tell_ends_at_once() -> Iterator[Any]:
    """P8: ListOffsets does not wait until what was acknowledged is visible."""

    async def catch_up(partition: Any, clock: Any) -> None:
        pass

    with replaced(list_offsets, "catch_up", catch_up):
        yield


@mutant
def tell_offsets_at_once() -> Iterator[Any]:
    """P8: OffsetFetch neither waits for acknowledged offsets nor says that they are unstable."""

    async def settle(self: OffsetsJournals, group: str) -> bool:
        return True

    with (
        replaced(OffsetsJournals, "settle", settle),
        replaced(OffsetsJournals, "unstable", lambda self, group: set()),
    ):
        yield


@mutant
def publish_in_the_middle() -> Iterator[Any]:
    """A plain table's cut is not one tick: each partition's end is read only when its turn comes."""
    real = PlainTables._part

    async def part(self: PlainTables, table: Any, partition: Any, end_offset: int) -> Any:
        await asyncio.sleep(0.2)
        return await real(self, table, partition, partition.log.end_offset)

    with replaced(PlainTables, "_part", part):
        yield
