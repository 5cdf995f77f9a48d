"""A producer of a partition as bytes: as checkpoints store it, and `producer_table` keeps it asleep.

    epoch i16, flags u8, last position u64
    first sequence i32, last sequence i32, base offset i64      for each batch that was seen; and with bit 4
    fingerprint u32
    epoch i16, number i64, is applied u8, rank i64              for each transaction that has ended here

Big-endian. Bit 0 of the flags: what was written before is not known. Bits 1 to 3: how many batches follow.
Bit 4: the producer has aborted with this epoch (since format 4 of the data directory).
"""

from __future__ import annotations

from struct import Struct, error

from faircopy.copier.producers import BranchOutcome, ProducerState, SeenBatch
from faircopy.journal.entry import TransactionId

HEAD = Struct(">hBQ")
SEEN = Struct(">iiq")
SEEN_AFTER_ABORT = Struct(">iiqI")
OUTCOME = Struct(">hqBq")
FLAGS_AT = 2
POSITION = Struct(">Q")
POSITION_AT = 3
FORGOTTEN = 1
BATCHES_SHIFT = 1
BATCHES_MASK = 0b111
FOLLOWS_ABORT = 1 << 4


def encode_producer(producer: ProducerState) -> bytes:
    """The row of a producer."""
    flags = producer.is_forgotten | len(producer.seen) << BATCHES_SHIFT
    if producer.follows_abort:
        flags |= FOLLOWS_ABORT
    layout = _layout_of_batches(flags)
    row = HEAD.pack(producer.epoch, flags, producer.last_position)
    for batch in producer.seen:
        row += layout.pack(*batch) if producer.follows_abort else layout.pack(*batch[:-1])
    return row + b"".join(
        OUTCOME.pack(epoch, number, is_applied, rank)
        for (_, epoch, number), is_applied, rank in producer.outcomes.values()
    )


def decode_producer(producer_id: int, row: bytes) -> ProducerState:
    """The producer with this id in a row."""
    epoch, flags, last_position = HEAD.unpack_from(row)
    end = _end_of_batches(row)
    seen = tuple(SeenBatch(*fields) for fields in _layout_of_batches(flags).iter_unpack(row[HEAD.size : end]))
    outcomes = (
        BranchOutcome(TransactionId(producer_id, epoch, number), bool(is_applied), rank)
        for epoch, number, is_applied, rank in OUTCOME.iter_unpack(row[end:])
    )
    return ProducerState(
        epoch,
        seen,
        last_position,
        outcomes,
        is_forgotten=bool(flags & FORGOTTEN),
        follows_abort=bool(flags & FOLLOWS_ABORT),
    )


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
    flags = row[FLAGS_AT]
    return HEAD.size + (flags >> BATCHES_SHIFT & BATCHES_MASK) * _layout_of_batches(flags).size


def _layout_of_batches(flags: int) -> Struct:
    return SEEN_AFTER_ABORT if flags & FOLLOWS_ABORT else SEEN
