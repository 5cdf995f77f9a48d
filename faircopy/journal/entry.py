"""What an entry of a journal is. How it stands in a file, `format_4` says, and `format_3` before it."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

HEADER_BYTES = 64
"""Of an entry, in all formats: so positions mean the same in all."""
MAX_LENGTH = (1 << 32) - 1
NOWHERE = -1


class Kind(IntEnum):
    """What an entry says. 1-15 stand in data journals, 16-31 in metadata journals (DESIGN, section 3)."""

    DRAFT = 1
    PREPARED = 2
    APPLY = 3
    DISCARD = 4
    PLAIN = 5
    TRIM = 6
    BEGIN = 16
    ADD = 17
    PREPARE_COMMIT = 18
    PREPARE_ABORT = 19
    COMMITTED = 20
    ABORTED = 21
    FENCE = 22
    FORGET = 23
    UNCLEAN = 24


class TransactionId(NamedTuple):
    """TxId: names one transaction for ever. Written `pid.epoch.number`."""

    producer_id: int
    producer_epoch: int
    number: int

    def __str__(self) -> str:
        return f"{self.producer_id}.{self.producer_epoch}.{self.number}"


NO_TRANSACTION = TransactionId(-1, -1, -1)


class Entry(NamedTuple):
    """One entry's header, without what only the file needs; `length` counts header and payload."""

    kind: int
    position: int
    length: int
    records: int
    leader_epoch: int
    previous: int
    transaction: TransactionId
    durable: int

    @property
    def end(self) -> int:
        """The position just behind this entry."""
        return self.position + self.length

    @property
    def payload_bytes(self) -> int:
        """The length of the payload."""
        return self.length - HEADER_BYTES


class BadEntry(Exception):
    """Bytes are not a whole and sound entry. Those who read a journal turn it into an error or a cut."""
