"""Journals in memory: entries as they stand in segment files, and what recovers them."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, cast

from crc32c import crc32c

from faircopy.journal.entry import HEADER_BYTES, NO_TRANSACTION, Entry, TransactionId
from faircopy.journal.entry_format import encode_header
from faircopy.journal.identity import TopicIdPartition
from faircopy.journal.journal import Journal
from faircopy.journal.options import Durability, JournalOptions
from faircopy.journal.segment import encode_segment_header, file_name
from faircopy.storage.state_store import StateStore
from tests.simulation.store import Contents, SimulatedStore

PARTITION = TopicIdPartition(bytes(range(16)), 1)
IDENTITY = PARTITION.identity
JOURNAL = Path("/data/journal/0")
LOG = Path("/data/log/0")
SALT = 0x0123456789ABCDEF
SEED = crc32c(struct.pack("<Q", SALT))
SEGMENT_BYTES = 1 << 20


class Written(NamedTuple):
    """An entry as it stands in a journal."""

    entry: Entry
    payload: bytes

    @property
    def encoded(self) -> bytes:
        return encode_header(self.entry, self.payload, SEED) + self.payload


class Writer:
    """Puts entries one after another, with nothing but their places and checksums right."""

    def __init__(self) -> None:
        self.written: list[Written] = []
        self.position = 0

    def add(
        self,
        kind: int,
        payload: bytes,
        *,
        records: int = 0,
        previous: int = -1,
        transaction: TransactionId = NO_TRANSACTION,
        durable: int = 0,
    ) -> None:
        length = HEADER_BYTES + len(payload)
        entry = Entry(kind, self.position, length, records, 0, previous, transaction, durable)
        self.written.append(Written(entry, payload))
        self.position = entry.end


def segment_files(
    written: Iterable[Written], identity: bytes, bases: Iterable[int] = (0,)
) -> dict[Path, bytes]:
    """The files of a journal whose segments begin at these positions."""
    files = {base: encode_segment_header(base, SALT, identity) for base in bases}
    for each in written:
        base = max(base for base in files if base <= each.entry.position)
        files[base] += each.encoded
    return {JOURNAL / file_name(base): content for base, content in files.items()}


def new_journal(identity: bytes) -> Journal:
    """A journal that is only recovered: what it would write with is not there."""

    def fail(error: BaseException) -> None:
        raise error

    options = JournalOptions(Durability.FSYNC, SEGMENT_BYTES, lambda: SALT, fail)
    return Journal(JOURNAL, identity, cast(Any, None), cast(Any, None), options)


def new_store(contents: Contents | None = None) -> StateStore:
    """A state store that is only read."""
    return SimulatedStore(contents or Contents(), cast(Any, None), random.Random(0), lambda: None)
