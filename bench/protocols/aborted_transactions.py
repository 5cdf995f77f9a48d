"""Puts the list of aborted transactions into a Fetch response, since the product's encoder leaves it empty.

In a response the list comes before the records of its partition:

    count of aborted transactions i32 (v12+: count + 1 as a varint)
        each: producer id i64, first offset i64, no tagged fields (v12+)
    preferred read replica i32 (v11+)
    length of the records i32 (v12+: length + 1 as a varint)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from faircopy.wire.primitives import varint

_FLEXIBLE_FROM = 12
_REPLICA_FROM = 11
_INT32 = struct.Struct(">i")
_ABORTED = struct.Struct(">qq")
_NO_TAGS = b"\0"


class AbortedTransaction(NamedTuple):
    """Makes read_committed consumers skip a producer's batches from `first_offset` to its marker (KIP-98)."""

    producer_id: int
    first_offset: int


def put_aborted(version: int, pieces: list[Any], aborted: Sequence[Sequence[AbortedTransaction]]) -> None:
    """Put a list for each partition that has records into the pieces of `encode_fetch_response`.

    The records of each partition must be one piece.
    """
    for number, transactions in enumerate(aborted):
        if transactions:
            # Encoded pieces and records alternate.
            before, records = pieces[2 * number : 2 * number + 2]
            _put_before(version, before, len(records), transactions)
    _INT32.pack_into(pieces[0], 0, sum(map(len, pieces)) - _INT32.size)


def _put_before(
    version: int, before: bytearray, records_bytes: int, transactions: Sequence[AbortedTransaction]
) -> None:
    """Replace the empty list before the length of the records."""
    is_flexible = version >= _FLEXIBLE_FROM
    length = len(varint(records_bytes + 1)) if is_flexible else _INT32.size
    end = len(before) - length - (_INT32.size if version >= _REPLICA_FROM else 0)
    start = end - (1 if is_flexible else _INT32.size)
    before[start:end] = _flexible(transactions) if is_flexible else _fixed(transactions)


def _flexible(transactions: Sequence[AbortedTransaction]) -> bytes:
    return varint(len(transactions) + 1) + b"".join(_ABORTED.pack(*each) + _NO_TAGS for each in transactions)


def _fixed(transactions: Sequence[AbortedTransaction]) -> bytes:
    return _INT32.pack(len(transactions)) + b"".join(_ABORTED.pack(*each) for each in transactions)
