"""The entries of a journal. `entry_format` has their layout in a file."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

HEADER_BYTES = 64
"""The size of an entry's header."""
MAX_LENGTH = (1 << 32) - 1
NOWHERE = -1


class Kind(IntEnum):
    """The kinds of entries: 1-15 in data journals, 16-31 in metadata journals, from 32 on in the catalogue's
    journal (docs/ARCHITECTURE.md).
    """

    DRAFT = 1
    PREPARED = 2
    APPLY = 3
    DISCARD = 4
    PLAIN = 5
    TRIM = 6
    FORGET_PRODUCERS = 7
    REOPEN = 8
    BEGIN = 16
    ADD = 17
    PREPARE_COMMIT = 18
    PREPARE_ABORT = 19
    COMMITTED = 20
    ABORTED = 21
    FENCE = 22
    FORGET = 23
    UNCLEAN = 24
    JOIN = 25
    CHANGE = 32


class TransactionId(NamedTuple):
    """TxId: the unique name of one transaction. Written `pid.epoch.number`."""

    producer_id: int
    producer_epoch: int
    number: int

    def __str__(self) -> str:
        return f"{self.producer_id}.{self.producer_epoch}.{self.number}"


NO_TRANSACTION = TransactionId(-1, -1, -1)


class Entry(NamedTuple):
    """One entry's header, without the fields that only the file needs; `length` counts header and payload."""

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
        """The position just after this entry."""
        return self.position + self.length

    @property
    def payload_bytes(self) -> int:
        """The length of the payload."""
        return self.length - HEADER_BYTES


class BadEntry(Exception):
    """Bytes are not a complete and sound entry. Readers of a journal turn this into an error or a cut."""
