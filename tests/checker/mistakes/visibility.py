"""Mistakes of visibility: messages that are seen and should not be, or that should be and are not."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.checker.history import Final, Operation, Poll, Read, Result
from tests.checker.mistakes.changes import STRANGER, everywhere, finals, renumbered, transactions, without


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


def tear(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """One message is missing from a transaction whose end is unknown."""
    visible = {read.value for final in finals(history) for read in final.reads}
    torn = [
        operation
        for operation in transactions(history, Result.UNKNOWN)
        if len(operation.sends) > 1 and operation.sends[0].value in visible
    ]
    return without(history, chosen.choice(chosen.choice(torn).sends).value) if torn else None


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


def drop(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """An acknowledged message is in no log."""
    values = [send.value for operation in transactions(history, Result.OK) for send in operation.sends]
    return without(history, chosen.choice(values)) if values else None


def take_back(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A message that was read at the end of a log is gone later."""
    seen = {read.value for operation in history if isinstance(operation, Poll) for read in operation.reads}
    taken = [final for final in finals(history) if final.reads[-1].value in seen]
    if not taken:
        return None
    final = chosen.choice(taken)
    shorter = replace(final, end_offset=final.end_offset - 1, reads=final.reads[:-1])
    return [shorter if operation is final else operation for operation in history]
