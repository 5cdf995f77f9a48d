"""What is seen: nothing that did not commit or before it does, and in the end all that did."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.checker.anomalies.words import listed, name_of
from tests.checker.facts import Facts
from tests.checker.history import Result, Value


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
