"""Copies of the entries of one journal in another, as a follower appends them."""

from __future__ import annotations

from crc32c import crc32c

from faircopy.journal.journal import Journal
from faircopy.journal.reading import Recovered
from faircopy.storage.system import Buffer


def crc_of(payload: Buffer) -> int:
    """The CRC that the header of an entry has of its payload."""
    return crc32c(payload) if payload else 0


def copy(journal: Journal, recovered: Recovered) -> None:
    """Append an entry that was read from another replica's files."""
    payload = bytes(recovered.payload)
    journal.append_copy(recovered.entry, payload, crc_of(payload))
