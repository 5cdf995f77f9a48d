"""What requests are told about ends of partitions and offsets of groups: what was committed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.checker.anomalies.words import name_of
from tests.checker.facts import Facts
from tests.checker.history import Committed, Result


def ends_before_commits(facts: Facts) -> Iterator[str]:
    """An end of a partition that is requested after a commit's ack includes the commit (P8)."""
    acked = sorted(
        (transaction.ended, number)
        for number, transaction in enumerate(facts.transactions)
        if transaction.result is Result.OK
    )
    acked_ends: dict[str, tuple[int, int]] = {}  # by partition: the greatest end so far, and its transaction
    at = 0
    for end in sorted(facts.ends, key=lambda end: end.asked):
        while at < len(acked) and acked[at][0] <= end.asked:
            number = acked[at][1]
            for partition, offset in facts.ends_of(number).items():
                acked_ends[partition] = max(acked_ends.get(partition, (0, 0)), (offset, number))
            at += 1
        least, number = acked_ends.get(end.partition, (0, 0))
        if end.end_offset < least:
            yield (
                f"a request at {end.asked:.6f} was told that {end.partition} ends at {end.end_offset}, after "
                f"{name_of(facts, number)} was acknowledged, which reaches to {least}"
            )


def lost_offsets(facts: Facts) -> Iterator[str]:
    """A request after a commit's ack is told the commit's offsets, or later ones (P8)."""
    commits = commits_of(facts)
    for place, told_of in by_place(facts).items():
        acked = sorted(
            (facts.transactions[n].ended, offset, n) for offset, n in commits[place] if is_ok(facts, n)
        )
        greatest, at = (-1, -1), 0
        for told in sorted(told_of, key=lambda told: told.asked):
            while at < len(acked) and acked[at][0] <= told.asked:
                greatest = max(greatest, acked[at][1:])
                at += 1
            if told.offset < greatest[0]:
                yield (
                    f"group {told.group!r} was said at {told.time:.6f} to have "
                    f"{told.partition}@{told.offset}; "
                    f"{name_of(facts, greatest[1])} had committed @{greatest[0]}"
                )


def phantom_offsets(facts: Facts) -> Iterator[str]:
    """Nobody is told an offset that was not committed yet (P1)."""
    commits = commits_of(facts)
    for place, told_of in by_place(facts).items():
        numbers: dict[int, list[int]] = defaultdict(list)
        for offset, number in commits[place]:
            numbers[offset].append(number)
        for told in told_of:
            is_known = any(may_be_committed(facts, number, told.time) for number in numbers[told.offset])
            if told.offset != -1 and not is_known:
                yield (
                    f"group {told.group!r} was said at {told.time:.6f} to have {told.partition}@{told.offset}"
                )


GroupPlace = tuple[str, str]  # group and partition


def commits_of(facts: Facts) -> dict[GroupPlace, list[tuple[int, int]]]:
    """All offsets sent for each partition of a group, each with its transaction."""
    commits: dict[GroupPlace, list[tuple[int, int]]] = defaultdict(list)
    for number, transaction in enumerate(facts.transactions):
        for group, partition, offset in transaction.offsets:
            commits[group, partition].append((offset, number))
    return commits


def by_place(facts: Facts) -> dict[GroupPlace, list[Committed]]:
    """The answers about each partition of a group."""
    found: dict[GroupPlace, list[Committed]] = defaultdict(list)
    for told in facts.committed:
        found[told.group, told.partition].append(told)
    return found


def is_ok(facts: Facts, number: int) -> bool:
    return facts.transactions[number].result is Result.OK


def may_be_committed(facts: Facts, number: int, time: float) -> bool:
    transaction = facts.transactions[number]
    asked = transaction.commit_asked
    return transaction.result is not Result.FAILED and asked is not None and asked <= time
