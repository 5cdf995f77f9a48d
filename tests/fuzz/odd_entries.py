"""Sound entries with odd fields, for the folds.

An entry whose checksum fits was written by a broker, since the checksum is salted: odd fields there are a
bug of some broker, or of a newer one. So the folds may refuse them as loudly as they like, but must not
hang, take all memory, or read what is not there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from faircopy.errors import FaircopyError
from faircopy.journal.entry import NO_TRANSACTION, Kind, TransactionId
from tests.fuzz.choices import Choices
from tests.fuzz.journals import Writer, Written

ENTRIES_MAX = 64
TRANSACTIONS = [
    NO_TRANSACTION,
    *(TransactionId(pid, epoch, n) for pid in (1, 2) for epoch in (0, 1) for n in (0, 1)),
]
NUMBERS: list[Any] = [0, 1, -1, 2**31, 2**63, -(2**63), 10**40, 0.5, None, True, "1", []]
TOPIC_IDS: list[Any] = ["00" * 16, "0f" * 16, "ff" * 16, "", "orders", None, 1, []]
NAMES: list[Any] = ["orders/1", "orders", "", "\ud800", "x" * 600, None, 1, []]
MakePayload = Callable[[Choices, int], bytes]


def odd_entries(choices: Choices, kinds: list[Kind], payload_of: MakePayload) -> list[Written]:
    """Entries of these kinds and sometimes of others, that belong together more often than not."""
    writer = Writer()
    heads: dict[TransactionId, int] = {}
    while not choices.is_over and len(writer.written) < ENTRIES_MAX:
        number = choices.number()
        kind = kinds[number % len(kinds)] if number < 0xF8 else number
        transaction = choices.one_of(TRANSACTIONS)
        oddity = choices.number()
        previous = heads.get(transaction, -1) if oddity & 7 else choices.signed(8)
        records = 2 if oddity & 0x38 else choices.number(4)
        durable = 0 if oddity & 0x40 else choices.number(2)
        if kind == Kind.DRAFT:
            heads[transaction] = writer.position
        writer.add(
            kind,
            payload_of(choices, kind),
            records=records,
            previous=previous,
            transaction=transaction,
            durable=durable,
        )
    return writer.written


@contextlib.contextmanager
def refusals() -> Iterator[list[FaircopyError]]:
    """The error by which the product refuses what is done here, if it does."""
    refused: list[FaircopyError] = []
    try:
        yield refused
    except FaircopyError as error:
        refused.append(error)
