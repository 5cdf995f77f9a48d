"""Mutants in which administrators' requests decide by what has changed by the time they write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from faircopy.hosting.administration import TopicAdministration
from faircopy.hosting.topic_changes import DecideCount
from tests.mutants.registry import mutant, replaced


def as_said(partitions: int, _present: int) -> int:
    return partitions


@mutant
def grow_by_what_was_there_before_the_lock() -> Iterator[Any]:
    """Of two CreatePartitions at once, both succeed, and the one for fewer partitions may be stored."""
    real = TopicAdministration.grow

    async def grow(
        self: TopicAdministration, counts: Mapping[str, DecideCount], *more: Any, **named: Any
    ) -> Any:
        said = {name: decide(self._hosted.known(name).topic.partitions) for name, decide in counts.items()}
        fixed = {name: partial(as_said, partitions) for name, partitions in said.items()}
        return await real(self, fixed, *more, **named)

    with replaced(TopicAdministration, "grow", grow):
        yield
