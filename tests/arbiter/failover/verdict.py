"""Whether what was acknowledged is there exactly once, in order, and nothing else that was not. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from tests.arbiter.failover.clients import MESSAGES, TRANSACTIONS, Outcome, Place, Read, Unit

WHOLE = {0: ("0", "2"), 1: ("1", "3")}
"""The messages of a transaction in each partition."""


def wrong(units: Iterable[Unit], seen: Mapping[Place, Sequence[Read]]) -> Iterator[str]:
    """What is wrong with what was read."""
    outcomes: dict[str, dict[int, Outcome]] = {TRANSACTIONS: {}, MESSAGES: {}}
    for unit in units:
        outcomes[unit.kind][unit.number] = unit.outcome
    for place, reads in seen.items():
        yield from wrong_epochs(place, reads)
    yield from wrong_messages(outcomes[MESSAGES], seen[MESSAGES, 0])
    yield from wrong_transactions(
        outcomes[TRANSACTIONS], {partition: seen[TRANSACTIONS, partition] for partition in WHOLE}
    )


def wrong_epochs(place: Place, reads: Sequence[Read]) -> Iterator[str]:
    """Offsets grow, and leader epochs never fall."""
    for before, after in pairwise(reads):
        if after.offset <= before.offset:
            yield f"{place}: offset {after.offset} was read after {before.offset}"
        if after.leader_epoch < before.leader_epoch:
            yield f"{place}: offset {after.offset} has epoch {after.leader_epoch} after {before.leader_epoch}"


def wrong_messages(outcomes: Mapping[int, Outcome], reads: Sequence[Read]) -> Iterator[str]:
    """Plain messages."""
    numbers = [int(read.value) for read in reads]
    acked = [number for number, outcome in outcomes.items() if outcome is Outcome.ACKED]
    yield from wrong_numbers(MESSAGES, numbers, acked, outcomes)


def wrong_transactions(
    outcomes: Mapping[int, Outcome], partitions: Mapping[int, Sequence[Read]]
) -> Iterator[str]:
    """Transactions: whole or not at all."""
    committed = [number for number, outcome in outcomes.items() if outcome is Outcome.ACKED]
    there: dict[int, set[int]] = {}
    for partition, reads in partitions.items():
        parts = parts_of(reads)
        yield from wrong_numbers(f"{TRANSACTIONS}-{partition}", list(parts), committed, outcomes)
        for number, found in parts.items():
            if tuple(found) != WHOLE[partition]:
                yield f"transaction {number} is not whole in partition {partition}: {found}"
            if outcomes.get(number) is Outcome.ABORTED:
                yield f"transaction {number} was aborted, and is there"
        there[partition] = set(parts)
    for number in sorted(there[0] ^ there[1]):
        yield f"transaction {number} is in one partition only"


def parts_of(reads: Iterable[Read]) -> dict[int, list[str]]:
    """The messages of each transaction, in the order in which they were read first."""
    parts: dict[int, list[str]] = defaultdict(list)
    for read in reads:
        number, _, part = read.value.partition(".")
        parts[int(number)].append(part)
    return parts


def wrong_numbers(
    where: str, numbers: Sequence[int], acked: Sequence[int], outcomes: Mapping[int, Outcome]
) -> Iterator[str]:
    """Each once, in order, and those that were acknowledged for certain."""
    found = set(numbers)
    if len(found) != len(numbers):
        yield f"{where}: {len(numbers) - len(found)} are there more than once"
    for before, after in pairwise(numbers):
        if after < before:
            yield f"{where}: {after} is there after {before}"
    for number in sorted(set(acked) - found):
        yield f"{where}: {number} was acknowledged, and is lost"
    for number in sorted(found - set(outcomes)):
        yield f"{where}: {number} was never sent, or never ended"
