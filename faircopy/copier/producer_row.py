"""A producer of a partition as bytes: as checkpoints store it, and `producer_table` keeps it asleep.

    epoch i16, flags u8, last position u64
    first sequence i32, last sequence i32, base offset i64      for each batch that was seen
    epoch i16, number i64, is applied u8, rank i64              for each transaction that has ended here

Big-endian. Bit 0 of the flags: what was written before is not known. The bits above: how many batches follow.
"""

from __future__ import annotations

from struct import Struct, error

from faircopy.copier.producers import BranchOutcome, ProducerState, SeenBatch
from faircopy.journal.entry import TransactionId

HEAD = Struct(">hBQ")
SEEN = Struct(">iiq")
OUTCOME = Struct(">hqBq")
FLAGS_AT = 2
POSITION = Struct(">Q")
POSITION_AT = 3
FORGOTTEN = 1
BATCHES_SHIFT = 1


def encode_producer(producer: ProducerState) -> bytes:
    """The row of a producer."""
    flags = producer.is_forgotten | len(producer.seen) << BATCHES_SHIFT
    row = HEAD.pack(producer.epoch, flags, producer.last_position)
    for batch in producer.seen:
        row += SEEN.pack(*batch)
    return row + b"".join(
        OUTCOME.pack(epoch, number, is_applied, rank)
        for (_, epoch, number), is_applied, rank in producer.outcomes.values()
    )


def decode_producer(producer_id: int, row: bytes) -> ProducerState:
    """The producer with this id in a row."""
    epoch, flags, last_position = HEAD.unpack_from(row)
    end = _end_of_batches(row)
    seen = tuple(SeenBatch(*fields) for fields in SEEN.iter_unpack(row[HEAD.size : end]))
    outcomes = (
        BranchOutcome(TransactionId(producer_id, epoch, number), bool(is_applied), rank)
        for epoch, number, is_applied, rank in OUTCOME.iter_unpack(row[end:])
    )
    return ProducerState(epoch, seen, last_position, outcomes, is_forgotten=bool(flags & FORGOTTEN))


def outcomes_in(row: bytes) -> int:
    """How many transactions of the producer in this row have ended here. Raises struct.error if the row is
    none of a producer.
    """
    if len(row) >= HEAD.size:
        number, rest = divmod(len(row) - _end_of_batches(row), OUTCOME.size)
        if number >= 0 and not rest:
            return number
    raise error(f"a producer can't have a row of {len(row)} bytes")


def last_position_in(row: bytes) -> int:
    """The position of the last batch of the producer in this row."""
    position: int = POSITION.unpack_from(row, POSITION_AT)[0]
    return position


def _end_of_batches(row: bytes) -> int:
    return HEAD.size + (row[FLAGS_AT] >> BATCHES_SHIFT) * SEEN.size
