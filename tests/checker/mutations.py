"""Mistakes that a broker could make, each injected into a clean history. The checker must find every one.

A mutation takes a history and a source of randomness, and returns another history, or None if this one has no
place for the mistake. Mutations change what was *read*, as a broker's mistake would, and leave what clients
did.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.checker.check import Anomaly
from tests.checker.history import (
    Committed,
    End,
    Final,
    Operation,
    Poll,
    Read,
    Result,
    Send,
    Snapshot,
    Transaction,
    Value,
)

Mutation = Callable[[list[Operation], random.Random], list[Operation] | None]

STRANGER = "nobody wrote this"


def everywhere(history: list[Operation], change: Callable[[Read], Read | None]) -> list[Operation]:
    """The history with each read changed or left out."""

    def changed(reads: list[Read]) -> list[Read]:
        return [read for read in map(change, reads) if read is not None]

    return [replace(operation, reads=changed(operation.reads)) for operation in history]


def finals(history: list[Operation]) -> list[Final]:
    return [operation for operation in history if isinstance(operation, Final) and operation.reads]


def transactions(history: list[Operation], result: Result) -> list[Transaction]:
    return [
        operation
        for operation in history
        if isinstance(operation, Transaction) and operation.result is result
    ]


def renumbered(history: list[Operation], partition: str, reads: list[Read]) -> list[Operation]:
    """Return the history with another log for one partition.

    All its readers see the new log, as far as they read.
    """
    log = [Read(partition, offset, read.value) for offset, read in enumerate(reads)]

    def changed(operation: Operation) -> Operation:
        new: list[Read] = []
        for read in operation.reads:
            if read.partition != partition:
                new.append(read)
            elif read.offset < len(log):
                new.append(log[read.offset])
        if isinstance(operation, Final) and operation.partition == partition:
            return Final(partition, 0, len(log), log)
        if isinstance(operation, Transaction):
            # The broker would have acknowledged each message at its new offset.
            offsets = {read.value: read.offset for read in log}
            sends = [
                Send(send.partition, send.value, offsets.get(send.value))
                if send.partition == partition and send.offset is not None
                else send
                for send in operation.sends
            ]
            return replace(operation, reads=new, sends=sends)
        return replace(operation, reads=new)

    return [changed(operation) for operation in history]


def hold_two_values(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """One reader sees another value at an offset."""
    polls = [
        number for number, operation in enumerate(history) if isinstance(operation, Poll) and operation.reads
    ]
    if not polls:
        return None
    number = chosen.choice(polls)
    poll = history[number]
    reads = [poll.reads[0]._replace(value=STRANGER), *poll.reads[1:]]
    return [*history[:number], replace(poll, reads=reads), *history[number + 1 :]]


def duplicate(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A message is copied twice."""
    final = chosen.choice(finals(history))
    at = chosen.randrange(len(final.reads))
    return renumbered(history, final.partition, [*final.reads[: at + 1], *final.reads[at:]])


def invent(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A message appears that nobody wrote."""
    final = chosen.choice(finals(history))
    at = chosen.randrange(len(final.reads))
    return renumbered(history, final.partition, [*final.reads[:at], Read("", 0, STRANGER), *final.reads[at:]])


def misplace(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A message of unknown fate appears in another partition than the one it was sent to."""
    visible = {read.value for final in finals(history) for read in final.reads}
    lost = [
        send
        for operation in transactions(history, Result.UNKNOWN)
        for send in operation.sends
        if send.value not in visible
    ]
    if not lost:
        return None
    send = chosen.choice(lost)
    final = chosen.choice([each for each in finals(history) if each.partition != send.partition])
    return renumbered(history, final.partition, [*final.reads, Read("", 0, send.value)])


def show_aborted(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A message of an aborted transaction is in the log."""
    aborted = transactions(history, Result.FAILED)
    if not aborted:
        return None
    send = chosen.choice(chosen.choice(aborted).sends)
    final = next(
        operation
        for operation in history
        if isinstance(operation, Final) and operation.partition == send.partition
    )
    return renumbered(history, final.partition, [*final.reads, Read("", 0, send.value)])


def show_early(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A message is read while its transaction is still open."""
    visible = {read.value: read for final in finals(history) for read in final.reads}
    places = [
        (operation.begun, visible[send.value])
        for operation in transactions(history, Result.OK)
        for send in operation.sends
        if operation.group is not None and send.value in visible
    ]
    if not places:
        return None
    time, read = chosen.choice(places)
    return [*history, Poll("early", 0, time, [read])]


def drop(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """An acknowledged message is in no log."""
    values = [send.value for operation in transactions(history, Result.OK) for send in operation.sends]
    return without(history, chosen.choice(values)) if values else None


def without(history: list[Operation], value: Value) -> list[Operation]:
    for final in finals(history):
        kept = [read for read in final.reads if read.value != value]
        if len(kept) < len(final.reads):
            return renumbered(history, final.partition, kept)
    return history


def drop_with_its_place(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A message is acknowledged at an offset that holds another one in the end."""
    known = [
        send
        for operation in transactions(history, Result.OK)
        for send in operation.sends
        if send.offset is not None
    ]  # fmt: skip
    if not known:
        return None
    lost = chosen.choice(known)
    return everywhere(
        history, lambda read: read._replace(value=STRANGER) if read.value == lost.value else read
    )


def tear(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """One message is missing from a transaction whose end is unknown."""
    visible = {read.value for final in finals(history) for read in final.reads}
    torn = [
        operation
        for operation in transactions(history, Result.UNKNOWN)
        if len(operation.sends) > 1 and operation.sends[0].value in visible
    ]
    return without(history, chosen.choice(chosen.choice(torn).sends).value) if torn else None


def skip(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A consumer is not given a message between two others."""
    return change_poll(history, chosen, lambda reads: [reads[0], *reads[2:]])


def go_back(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A consumer is given a message again."""
    return change_poll(history, chosen, lambda reads: [reads[0], *reads])


def change_poll(
    history: list[Operation], chosen: random.Random, change: Callable[[list[Read]], list[Read]]
) -> list[Operation] | None:
    polls = [
        number
        for number, operation in enumerate(history)
        if isinstance(operation, Poll) and len({read.partition for read in operation.reads[:3]}) == 1
        if len(operation.reads) > 2
    ]
    if not polls:
        return None
    number = chosen.choice(polls)
    return [
        *history[:number],
        replace(history[number], reads=change(history[number].reads)),
        *history[number + 1 :],
    ]


def take_back(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A message that was read at the end of a log is gone later."""
    seen = {read.value for operation in history if isinstance(operation, Poll) for read in operation.reads}
    taken = [final for final in finals(history) if final.reads[-1].value in seen]
    if not taken:
        return None
    final = chosen.choice(taken)
    shorter = replace(final, end_offset=final.end_offset - 1, reads=final.reads[:-1])
    return [shorter if operation is final else operation for operation in history]


def leave_a_gap(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """An offset is left unused."""
    final = chosen.choice(finals(history))
    at = chosen.choice(final.reads).offset

    def moved(read: Read) -> Read:
        follows = read.partition == final.partition and read.offset >= at
        return read._replace(offset=read.offset + 1) if follows else read

    grown = everywhere(history, moved)
    return [
        replace(operation, end_offset=operation.end_offset + 1)
        if isinstance(operation, Final) and operation.partition == final.partition
        else operation
        for operation in grown
    ]


def turn(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """Two messages of a transaction swap places."""
    for final in chosen.sample(finals(history), len(finals(history))):
        for at in range(len(final.reads) - 1):
            first, second = (transaction_of(history, read.value) for read in final.reads[at : at + 2])
            if first is second:
                reads = [*final.reads[:at], final.reads[at + 1], final.reads[at], *final.reads[at + 2 :]]
                return renumbered(history, final.partition, reads)
    return None


def swap_in_group(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """Two transactions of a group have different orders in two partitions."""
    return swap(history, chosen, lambda first, second: first.group == second.group)


def swap_across_groups(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """Two transactions of different groups have different orders in two partitions."""
    return swap(history, chosen, lambda first, second: first.group != second.group)


def swap(
    history: list[Operation], chosen: random.Random, may_swap: Callable[[Transaction, Transaction], bool]
) -> list[Operation] | None:
    for final in chosen.sample(finals(history), len(finals(history))):
        for at in chosen.sample(range(len(final.reads) - 1), len(final.reads) - 1):
            first, second = (transaction_of(history, read.value) for read in final.reads[at : at + 2])
            if may_swap(first, second) and is_ordered_elsewhere(first, second, final.partition):
                reads = [*final.reads[:at], final.reads[at + 1], final.reads[at], *final.reads[at + 2 :]]
                return renumbered(history, final.partition, reads)
    return None


def transaction_of(history: list[Operation], value: Value) -> Transaction:
    return next(
        operation
        for operation in history
        if isinstance(operation, Transaction) and any(send.value == value for send in operation.sends)
    )


def is_ordered_elsewhere(first: Transaction, second: Transaction, here: str) -> bool:
    """Whether another partition holds both of two transactions."""
    shared = {send.partition for send in first.sends} & {send.partition for send in second.sends} - {here}
    return first is not second and None not in (first.group, second.group) and bool(shared)


def read_the_future(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A transaction reads what a later one in its partition wrote."""
    for final in chosen.sample(finals(history), len(finals(history))):
        for early, late in zip(final.reads, final.reads[1:], strict=False):
            reader = transaction_of(history, early.value)
            if transaction_of(history, late.value) is not reader:
                return [
                    replace(operation, reads=[*operation.reads, late]) if operation is reader else operation
                    for operation in history
                ]
    return None


def tear_a_snapshot(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A plain table ends in the middle of a transaction."""
    for number, operation in enumerate(history):
        if isinstance(operation, Snapshot) and operation.reads:
            values = {read.value for read in operation.reads}
            for read in chosen.sample(operation.reads, len(operation.reads)):
                sends = transaction_of(history, read.value).sends
                if sum(send.value in values for send in sends) > 1:
                    kept = [each for each in operation.reads if each.value != read.value]
                    return [*history[:number], replace(operation, reads=kept), *history[number + 1 :]]
    return None


def show_a_row_twice(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A plain table holds a message twice."""

    def with_one_again(table: Snapshot) -> Snapshot:
        return replace(table, reads=[*table.reads, table.reads[0]])

    return change_one(history, chosen, Snapshot, with_one_again, has_rows)


def has_rows(_history: list[Operation], snapshot: Operation) -> bool:
    """Whether there is anything in a table."""
    return bool(snapshot.reads)


def leave_out_the_first(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A plain table lacks the first transaction of a partition, and has later ones."""
    return leave_out(history, chosen, lambda reads: [reads[0]])


def leave_out_any(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A plain table lacks a transaction, and has later ones."""
    return leave_out(history, chosen, lambda reads: reads)


def leave_out(
    history: list[Operation], chosen: random.Random, may_go: Callable[[list[Read]], list[Read]]
) -> list[Operation] | None:
    """The history with a table that lacks the transaction of one of these reads, as a whole."""
    for number, operation in enumerate(history):
        if not isinstance(operation, Snapshot) or not operation.reads:
            continue
        left_out = transaction_of(history, chosen.choice(may_go(operation.reads)).value)
        values = {send.value for send in left_out.sends}
        kept = [read for read in operation.reads if read.value not in values]
        gone = [read for read in operation.reads if read.value in values]
        if any(read.partition == other.partition and read > other for read in kept for other in gone):
            return [*history[:number], replace(operation, reads=kept), *history[number + 1 :]]
    return None


def forget_a_commit(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """The reported end of a partition does not include what was just committed."""
    return change_one(
        history, chosen, End, lambda end: replace(end, end_offset=end.end_offset - 1), needs_acked
    )


def needs_acked(history: list[Operation], end: Operation) -> bool:
    """Whether the last message of a partition, as far as this end reaches, was acknowledged."""
    assert isinstance(end, End)
    final = next(each for each in finals(history) if each.partition == end.partition)
    return end.end_offset > 0 and (
        transaction_of(history, final.reads[end.end_offset - 1].value).result is Result.OK
    )


def forget_an_offset(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A group's offset is not the committed one."""
    return change_one(history, chosen, Committed, lambda told: replace(told, offset=-1), needs_acked_offset)


def needs_acked_offset(history: list[Operation], told: Operation) -> bool:
    assert isinstance(told, Committed)
    return any(
        transaction.ended <= told.asked and transaction.offsets
        for transaction in transactions(history, Result.OK)
    )


def invent_an_offset(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A group's offset is one that nobody committed."""
    return change_one(history, chosen, Committed, lambda told: replace(told, offset=10**9), lambda *_: True)


def change_one(
    history: list[Operation],
    chosen: random.Random,
    kind: type[Any],
    change: Callable[[Any], Operation],
    fits: Callable[[list[Operation], Operation], bool],
) -> list[Operation] | None:
    numbers = [
        n for n, operation in enumerate(history) if isinstance(operation, kind) and fits(history, operation)
    ]
    if not numbers:
        return None
    number = chosen.choice(numbers)
    return [*history[:number], change(history[number]), *history[number + 1 :]]


MUTATIONS: dict[Mutation, Anomaly] = {
    hold_two_values: Anomaly.INCONSISTENT_OFFSETS,
    duplicate: Anomaly.DUPLICATE,
    invent: Anomaly.PHANTOM,
    misplace: Anomaly.PHANTOM,
    show_aborted: Anomaly.ABORTED_READ,
    show_early: Anomaly.UNCOMMITTED_READ,
    tear: Anomaly.TORN_TRANSACTION,
    drop_with_its_place: Anomaly.LOST_WRITE,
    drop: Anomaly.UNSEEN,
    take_back: Anomaly.VANISHED,
    skip: Anomaly.POLL_SKIP,
    go_back: Anomaly.NON_MONOTONIC_POLL,
    swap_in_group: Anomaly.GROUP_ORDER,
    swap_across_groups: Anomaly.WRITE_CYCLE,
    read_the_future: Anomaly.READ_CYCLE,
    turn: Anomaly.SEND_ORDER,
    leave_a_gap: Anomaly.OFFSET_GAP,
    tear_a_snapshot: Anomaly.SNAPSHOT_TEAR,
    show_a_row_twice: Anomaly.SNAPSHOT_GAP,
    leave_out_the_first: Anomaly.SNAPSHOT_GAP,
    leave_out_any: Anomaly.SNAPSHOT_GAP,
    forget_a_commit: Anomaly.END_BEFORE_COMMIT,
    forget_an_offset: Anomaly.OFFSET_LOST,
    invent_an_offset: Anomaly.OFFSET_PHANTOM,
}
