"""The checker finds every anomaly of a history, and explains each in a line.

The anomalies are those of Jepsen's Kafka tests (Kyle Kingsbury, "Redpanda 21.10.1", 2022). Rules are stricter
where faircopy promises more: no gaps (P3), no interleaved transactions (G0), one order for each group (P5),
whole snapshots.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from tests.checker.facts import Facts
from tests.checker.history import Committed, Operation, Poll, Read, Result, Snapshot, Transaction, Value

EXPLAINED_MAX = 8


class Anomaly(Enum):
    """The anomalies that must never be found."""

    INCONSISTENT_OFFSETS = "inconsistent offsets"
    DUPLICATE = "duplicate"
    PHANTOM = "phantom"
    ABORTED_READ = "aborted read (G1a)"
    UNCOMMITTED_READ = "uncommitted read"
    TORN_TRANSACTION = "torn transaction"
    LOST_WRITE = "lost write"
    UNSEEN = "unseen"
    VANISHED = "vanished"
    POLL_SKIP = "poll skip"
    NON_MONOTONIC_POLL = "non-monotonic poll"
    WRITE_CYCLE = "write cycle (G0)"
    READ_CYCLE = "write and read cycle (G1c)"
    GROUP_ORDER = "group order"
    SEND_ORDER = "send order"
    OFFSET_GAP = "offset gap"
    SNAPSHOT_TEAR = "snapshot tear"
    SNAPSHOT_GAP = "snapshot gap"
    END_BEFORE_COMMIT = "end before a commit"
    OFFSET_LOST = "committed offset lost"
    OFFSET_PHANTOM = "committed offset that nobody committed"


class Verdict(Enum):
    """`UNKNOWN`: nothing was found, but the history ends before everything was read."""

    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"


class Finding(NamedTuple):
    """One anomaly, with the values, transactions and offsets that show it."""

    anomaly: Anomaly
    explanation: str

    def __str__(self) -> str:
        return f"{self.anomaly.value}: {self.explanation}"


class Checked(NamedTuple):
    """The result of a check."""

    verdict: Verdict
    findings: list[Finding]


def check(operations: Iterable[Operation]) -> Checked:
    """All findings of a history. Takes time and memory linear in it."""
    facts = Facts(operations)
    findings = [Finding(anomaly, explanation) for anomaly, find in CHECKS for explanation in find(facts)]
    if findings:
        return Checked(Verdict.INVALID, findings)
    return Checked(Verdict.VALID if facts.is_complete else Verdict.UNKNOWN, [])


# -- values and offsets --------------------------------------------------------------------------------------


def inconsistent_offsets(facts: Facts) -> Iterator[str]:
    """An offset never holds two values (P7)."""
    for (partition, offset), values in facts.values_at.items():
        if len(values) > 1:
            yield f"offset {offset} of {partition} held {listed(values)}"


def duplicates(facts: Facts) -> Iterator[str]:
    """Each value is at one offset only (P2)."""
    for value, places in facts.places_of.items():
        if len(places) > 1:
            yield f"{value!r} stands at {listed(f'{partition}@{offset}' for partition, offset in places)}"


def phantoms(facts: Facts) -> Iterator[str]:
    """Every value read was written, and to the partition where it was read."""
    for value, places in facts.places_of.items():
        writer = facts.writer.get(value)
        if writer is None:
            yield f"{value!r} was read, but nobody wrote it"
            continue
        sent_to = next(send.partition for send in facts.transactions[writer].sends if send.value == value)
        for partition, offset in places:
            if partition != sent_to:
                yield f"{value!r} was sent to {sent_to} and read at {partition}@{offset}"


def aborted_reads(facts: Facts) -> Iterator[str]:
    """Values of a transaction that certainly failed are never read (P1)."""
    for value in facts.places_of:
        writer = facts.writer.get(value)
        if (
            writer is not None
            and facts.transactions[writer].result is Result.FAILED
            and was_read(facts, value)
        ):
            yield f"{value!r} was read, and {name_of(facts, writer)} failed"


def was_read(facts: Facts, value: Value) -> bool:
    return value in facts.first_read or value in facts.final_values


def uncommitted_reads(facts: Facts) -> Iterator[str]:
    """Nothing is read before its commit was requested (P1). A plain send requests it at once."""
    for value, time in facts.first_read.items():
        writer = facts.writer.get(value)
        if writer is None:
            continue
        transaction = facts.transactions[writer]
        asked = transaction.begun if transaction.group is None else transaction.commit_asked
        if asked is None or time < asked:
            when = "which was never asked for" if asked is None else f"asked for at {asked:.6f}"
            yield f"{value!r} was read at {time:.6f}, before the commit of {name_of(facts, writer)}, {when}"


def torn_transactions(facts: Facts) -> Iterator[str]:
    """In the end, a transaction is visible as a whole or not at all."""
    if not facts.is_complete:
        return
    for number, transaction in enumerate(facts.transactions):
        if transaction.result is Result.FAILED:
            continue  # its visible messages are aborted reads
        seen = [send.value for send in transaction.sends if send.value in facts.final_values]
        missing = [
            send.value
            for send in transaction.sends
            if send.value not in facts.final_values and not is_trimmed(facts, send.value)
        ]
        if seen and missing:
            yield f"{name_of(facts, number)} shows {listed(seen)}, and not {listed(missing)}"


def lost_writes(facts: Facts) -> Iterator[str]:
    """A value acknowledged at an offset is there, once anything at or after that offset was read (P2)."""
    highest: dict[str, int] = defaultdict(lambda: -1)
    for final in facts.finals:
        for read in final.reads:
            highest[final.partition] = max(highest[final.partition], read.offset)
    for number, transaction in enumerate(facts.transactions):
        if transaction.result is not Result.OK:
            continue
        for send in transaction.sends:
            is_known = send.offset is not None and send.offset <= highest[send.partition]
            if (
                is_known
                and send.value not in facts.final_values
                and is_kept(facts, send.partition, send.offset)
            ):
                yield (
                    f"{send.value!r} of {name_of(facts, number)} was acknowledged "
                    f"at {send.partition}@{send.offset}"
                )


def is_kept(facts: Facts, partition: str, offset: int | None) -> bool:
    """Whether an offset is at or above the start of its log, so that retention has not deleted it."""
    start = next((final.start_offset for final in facts.finals if final.partition == partition), 0)
    return offset is None or offset >= start


def unseen(facts: Facts) -> Iterator[str]:
    """Every acknowledged value is read in the end (P2)."""
    if not facts.is_complete:
        return
    finals = {final.partition for final in facts.finals}
    for number, transaction in enumerate(facts.transactions):
        if transaction.result is not Result.OK:
            continue
        for send in transaction.sends:
            is_missing = send.value not in facts.final_values and send.partition in finals
            if is_missing and not is_trimmed(facts, send.value):
                name = name_of(facts, number)
                yield f"{send.value!r} of {name} was acknowledged, but is not in {send.partition}"


def vanished(facts: Facts) -> Iterator[str]:
    """Every value that was read is there in the end, whoever acknowledged it (P7)."""
    if not facts.is_complete:
        return
    finals = {final.partition for final in facts.finals}
    for value, time in facts.first_read.items():
        if value in facts.final_values or is_trimmed(facts, value):
            continue
        places = [
            f"{partition}@{offset}" for partition, offset in facts.places_of[value] if partition in finals
        ]
        if places:
            yield f"{value!r} was read at {listed(places)} at {time:.6f}, but is not there in the end"


def is_trimmed(facts: Facts, value: Value) -> bool:
    """Whether a value was seen at an offset that is now below the start of its log."""
    return any(not is_kept(facts, partition, offset) for partition, offset in facts.places_of.get(value, ()))


def send_orders(facts: Facts) -> Iterator[str]:
    """Each partition holds the messages of a transaction in the order in which they were sent (P2)."""
    for number, transaction in enumerate(facts.transactions):
        last: dict[str, tuple[int, Value]] = {}
        for send in transaction.sends:
            for partition, offset in facts.places_of.get(send.value, ()):
                if partition in last and offset < last[partition][0]:
                    first, second = last[partition][1], send.value
                    yield (
                        f"{name_of(facts, number)} sent {first!r} before {second!r}, "
                        f"but {partition} has them in reverse"
                    )
                last[partition] = offset, send.value


def offset_gaps(facts: Facts) -> Iterator[str]:
    """Offsets are contiguous from the start of a log to its end (P3)."""
    for final in facts.finals:
        expected = final.start_offset
        for read in final.reads:
            if read.offset != expected:
                yield f"{final.partition} goes from {expected - 1} to {read.offset}"
            expected = read.offset + 1


# -- consumers -----------------------------------------------------------------------------------------------


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


# -- cycles --------------------------------------------------------------------------------------------------

Edges = dict[int, set[int]]  # transaction -> the transactions before it


def write_cycles(facts: Facts) -> Iterator[str]:
    """Transactions have the same order in all partitions, each in one piece."""
    if cycle := cycle_of(write_edges(facts)):
        names = listed(name_of(facts, number) for number in cycle)
        yield f"each stands before the next in some partition: {names}"


def read_cycles(facts: Facts) -> Iterator[str]:
    """No transaction reads, directly or not, from a later one.

    Cycles of writes alone count as write cycles.
    """
    writes = write_edges(facts)
    if cycle_of(writes):
        return
    edges = {number: set(before) for number, before in writes.items()}
    for number, transaction in enumerate(facts.transactions):
        for read in transaction.reads:
            writer = facts.writer.get(read.value)
            if writer is not None and writer != number:
                edges.setdefault(number, set()).add(writer)
    if cycle := cycle_of(edges):
        names = listed(name_of(facts, number) for number in cycle)
        yield f"each is read by the next, or stands before it: {names}"


def group_orders(facts: Facts) -> Iterator[str]:
    """The transactions of a group have the same order in all partitions (P5)."""
    edges: dict[str, Edges] = defaultdict(dict)
    for order in facts.order.values():
        last: dict[str, int] = {}
        for number in runs(facts, order):
            group = facts.transactions[number].group
            if group is None:
                continue
            if group in last and last[group] != number:
                edges[group].setdefault(number, set()).add(last[group])
            last[group] = number
    for group, of_group in edges.items():
        if cycle := cycle_of(of_group):
            yield f"group {group!r}: {listed(name_of(facts, number) for number in cycle)}"


def write_edges(facts: Facts) -> Edges:
    edges: Edges = {}
    for order in facts.order.values():
        before: int | None = None
        for number in runs(facts, order):
            if before is not None:
                edges.setdefault(number, set()).add(before)
            before = number
    return edges


def runs(facts: Facts, order: list[Value]) -> Iterator[int]:
    """The transactions of a partition's values, each once for every contiguous piece."""
    last: int | None = None
    for value in order:
        number = facts.writer.get(value)
        if number is not None and number != last:
            yield number
            last = number


def cycle_of(edges: Edges) -> list[int]:
    """A cycle, if there is one."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


# -- plain tables --------------------------------------------------------------------------------------------


def snapshot_tears(facts: Facts) -> Iterator[str]:
    """A snapshot holds each transaction as a whole or not at all."""
    for snapshot in facts.snapshots:
        yield from _tears_of(facts, snapshot)


def _tears_of(facts: Facts, snapshot: Snapshot) -> Iterator[str]:
    partitions = {read.partition for read in snapshot.reads}
    held = {read.value for read in snapshot.reads}
    for number in {facts.writer[value]: None for value in held if value in facts.writer}:
        transaction = facts.transactions[number]
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


# -- reading what was committed ------------------------------------------------------------------------------


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


# -- words ---------------------------------------------------------------------------------------------------


def name_of(facts: Facts, number: int) -> str:
    transaction: Transaction = facts.transactions[number]
    kind = "plain send" if transaction.group is None else "transaction"
    return f"{kind} {number} of {transaction.process} ({transaction.result.value})"


def listed(things: Iterable[object]) -> str:
    shown = list(things)
    more = f" and {len(shown) - EXPLAINED_MAX} more" if len(shown) > EXPLAINED_MAX else ""
    return ", ".join(str(thing) for thing in shown[:EXPLAINED_MAX]) + more


CHECKS: list[tuple[Anomaly, Callable[[Facts], Iterator[str]]]] = [
    (Anomaly.INCONSISTENT_OFFSETS, inconsistent_offsets),
    (Anomaly.DUPLICATE, duplicates),
    (Anomaly.PHANTOM, phantoms),
    (Anomaly.ABORTED_READ, aborted_reads),
    (Anomaly.UNCOMMITTED_READ, uncommitted_reads),
    (Anomaly.TORN_TRANSACTION, torn_transactions),
    (Anomaly.LOST_WRITE, lost_writes),
    (Anomaly.UNSEEN, unseen),
    (Anomaly.VANISHED, vanished),
    (Anomaly.POLL_SKIP, poll_skips),
    (Anomaly.NON_MONOTONIC_POLL, non_monotonic_polls),
    (Anomaly.WRITE_CYCLE, write_cycles),
    (Anomaly.READ_CYCLE, read_cycles),
    (Anomaly.GROUP_ORDER, group_orders),
    (Anomaly.SEND_ORDER, send_orders),
    (Anomaly.OFFSET_GAP, offset_gaps),
    (Anomaly.SNAPSHOT_TEAR, snapshot_tears),
    (Anomaly.SNAPSHOT_GAP, snapshot_gaps),
    (Anomaly.END_BEFORE_COMMIT, ends_before_commits),
    (Anomaly.OFFSET_LOST, lost_offsets),
    (Anomaly.OFFSET_PHANTOM, phantom_offsets),
]
