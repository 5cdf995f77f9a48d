"""Mutants in which administrators' requests decide by what has changed by the time they write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from faircopy.hosting.catalog import Catalog
from tests.mutants.registry import mutant, replaced


@mutant
def grow_by_what_was_there_before_the_lock() -> Iterator[Any]:
    """Of two CreatePartitions at once, both succeed, and the one for fewer partitions may be stored."""
    real = Catalog.grow

    async def grow(
        self: Catalog, name: str, decide: Callable[[int], int], *, validate_only: bool = False
    ) -> None:
        decided = decide(self.known(name).topic.partitions)
        await real(self, name, lambda _present: decided, validate_only=validate_only)

    with replaced(Catalog, "grow", grow):
        yield
