"""What a start checks of the state store, through LMDB: that its state is the newest, and that it has all of
its records, each as it was stored.

LMDB trusts its file. It may miss damage in a page, or be ended by it. `faircopy verify` reads the pages
themselves (`verify/state_pages.py`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from faircopy.errors import FaircopyError
from faircopy.storage.sealed import is_sound, seal

FILE = "data.mdb"
STAMP = b"last transaction"
BESIDE_TABLES = b""
MAP_BYTES = 64 << 30  # address space, not memory or disk
NUMBER = struct.Struct("<Q")
HEADS = 2
HEAD_NUMBER_AT = 144  # of the page: the number of the transaction that wrote this head


class Contradiction(FaircopyError):
    """What LMDB finds in one place of its file does not go with what it finds in another."""


class RecordKey(NamedTuple):
    """The table and the key of a record."""

    table: str
    key: bytes


def encode_stamp(transaction: int) -> bytes:
    """The value that the transaction with this number stores for STAMP, beside the tables."""
    return seal(BESIDE_TABLES, STAMP, NUMBER.pack(transaction))


def ensure_newest(transaction: Any, read: Callable[[int, int], bytes], page_bytes: int) -> None:
    """Raise Contradiction if this transaction, which may write, does not see the newest state.

    LMDB takes the state whose head has the greater number. If one has changed, it differs from the stamp, or
    from the other head by more than one. `read(size, byte)` reads the file.
    """
    last = transaction.id() - 1
    heads = [NUMBER.unpack(read(NUMBER.size, head * page_bytes + HEAD_NUMBER_AT))[0] for head in range(HEADS)]
    if max(heads) - min(heads) != 1:
        raise Contradiction(f"its two heads are of transactions {heads[0]} and {heads[1]}")
    if transaction.get(STAMP) != encode_stamp(last):
        raise Contradiction(f"its head is of transaction {last}, and its tables are not")


def find_damaged(transaction: Any, tables: Mapping[str, Any]) -> Iterator[RecordKey]:
    """The records that do not match their checksums. Reads all tables, by name.

    Raises Contradiction if a table is not whole.
    """
    for name, table in tables.items():
        encoded, count, last = name.encode(), 0, b""
        with transaction.cursor(db=table) as cursor:
            for key, sealed in cursor:
                if key <= last:
                    raise Contradiction(f"the keys of table {name} are out of order")
                if not is_sound(encoded, key, sealed):
                    yield RecordKey(name, key)
                count, last = count + 1, key
        expected = transaction.stat(table)["entries"]
        if count != expected:
            raise Contradiction(f"table {name} should have {expected} records, and has {count}")
