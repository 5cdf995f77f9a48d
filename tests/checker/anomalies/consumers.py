"""What a consumer is given: one message after the other."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checker.facts import Facts
from tests.checker.history import Poll, Read


def poll_skips(facts: Facts) -> Iterator[str]:
    """A consumer skips no messages."""
    for process, before, read in steps(facts):
        if read.offset > before + 1:
            yield f"{process} was given {read.partition}@{before} and then @{read.offset}"


def non_monotonic_polls(facts: Facts) -> Iterator[str]:
    """A consumer never goes back of its own accord."""
    for process, before, read in steps(facts):
        if read.offset <= before:
            yield f"{process} was given {read.partition}@{before} and then @{read.offset}"


def steps(facts: Facts) -> Iterator[tuple[str, int, Read]]:
    """Each message that a consumer was given, with the offset of the one before it, within one assignment."""
    for process, polls in facts.polls.items():
        last: dict[tuple[int, str], int] = {}
        for poll in polls:
            yield from _steps_of(process, poll, last)


def _steps_of(process: str, poll: Poll, last: dict[tuple[int, str], int]) -> Iterator[tuple[str, int, Read]]:
    for read in poll.reads:
        place = poll.assignment, read.partition
        if place in last:
            yield process, last[place], read
        last[place] = read.offset
