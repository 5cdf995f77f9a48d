"""Checks that the state store's file is sound: its pages, its tables, and the checksum of every record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from faircopy.storage.paths import exists, size_of
from faircopy.storage.sealed import is_sound, seal
from faircopy.storage.store_page import NUMBER
from faircopy.storage.store_pages import Flaw, StoredRecord, StorePages

FILE = "data.mdb"
STAMP = b"last transaction"
BESIDE_TABLES = b""
MAP_BYTES = 64 << 30  # address space, not memory or disk


class StoreCheck(NamedTuple):
    """The result of a check. With `flaws`, LMDB must not open the file; with `damaged` records it may."""

    flaws: list[Flaw]
    damaged: list[StoredRecord]


def encode_stamp(transaction: int) -> bytes:
    """The value that the transaction with this number stores for STAMP, beside the tables."""
    return seal(BESIDE_TABLES, STAMP, NUMBER.pack(transaction))


def check_store(
    directory: Path, tables: Iterable[str], advance: Callable[[int], None] = lambda _bytes: None
) -> StoreCheck:
    """Read all of the state store in `directory`, which should have these tables; nobody may write to it
    meanwhile.

    A missing or empty store is sound. `advance(bytes)` reports progress. Raises StorageFailure.
    """
    path = directory / FILE
    if not exists(path) or not size_of(path):
        return StoreCheck([], [])
    pages = StorePages(path, STAMP, MAP_BYTES, advance)
    is_new, damaged = True, []
    for record in pages.records():
        is_new = False
        if not is_sound(record.table, record.key, record.value):
            damaged.append(record)
    missing = {name.encode() for name in tables} - pages.tables.keys()
    if not pages.flaws and (pages.tables or not is_new):
        pages.flaws.extend(Flaw(0, f"table {name.decode()!r} is missing") for name in sorted(missing))
    for record in damaged:
        if record.table == BESIDE_TABLES:
            pages.flaws.append(Flaw(record.byte, "the record beside the tables does not match its checksum"))
    return StoreCheck(pages.flaws, damaged)
