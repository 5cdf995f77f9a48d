"""Snapshots of plain tables: whole transactions, and nothing left out."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checker.anomalies.words import listed, name_of
from tests.checker.facts import Facts
from tests.checker.history import Snapshot


def snapshot_tears(facts: Facts) -> Iterator[str]:
    """A snapshot holds each transaction as a whole or not at all, and each plain send unless it may divide
    them.
    """
    for snapshot in facts.snapshots:
        yield from _tears_of(facts, snapshot)


def _tears_of(facts: Facts, snapshot: Snapshot) -> Iterator[str]:
    partitions = {read.partition for read in snapshot.reads}
    held = {read.value for read in snapshot.reads}
    for number in {facts.writer[value]: None for value in held if value in facts.writer}:
        transaction = facts.transactions[number]
        if snapshot.divides_plain and transaction.group is None:
            continue
        missing = [
            send.value
            for send in transaction.sends
            if send.value not in held
            and (send.partition in partitions or is_of_table(send.partition, snapshot))
        ]
        if missing:
            torn = f"part of {name_of(facts, number)}: not {listed(missing)}"
            yield f"{snapshot.table} at {snapshot.time:.6f} shows {torn}"


def snapshot_gaps(facts: Facts) -> Iterator[str]:
    """A snapshot holds each message once, and misses nothing before what it holds."""
    starts = {final.partition: final.start_offset for final in facts.finals}
    for snapshot in facts.snapshots:
        offsets: dict[str, list[int]] = {}
        for read in snapshot.reads:
            offsets.setdefault(read.partition, []).append(read.offset)
        for partition, held in offsets.items():
            held.sort()
            before = min(starts.get(partition, held[0]), held[0]) - 1
            for offset in held:
                if offset != before + 1:
                    shown = f"{snapshot.table} at {snapshot.time:.6f}"
                    yield f"{shown} goes from {partition}@{before} to {partition}@{offset}"
                before = offset


def is_of_table(partition: str, snapshot: Snapshot) -> bool:
    """Whether a partition belongs to a table: a table holds the topics that its name lists."""
    return partition.rpartition("-")[0] in snapshot.table.split("+")
