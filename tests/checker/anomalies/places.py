"""What stands where: one value at an offset, each value once, in the order of sends, and without gaps."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checker.anomalies.words import listed, name_of
from tests.checker.facts import Facts
from tests.checker.history import Value


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
