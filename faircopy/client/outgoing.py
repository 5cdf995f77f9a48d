"""What a member has yet to send to one partition: records become batches, batches get sequence numbers.

Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch

BATCH_BYTES = 256 << 10
IN_FLIGHT_MAX = 5
"""Batches of a partition that may be on their way at once: a broker knows the last five (KIP-98)."""
RECORD_OVERHEAD_BYTES = 32
SEQUENCES = 1 << 31


class ProducerIdentity(NamedTuple):
    """Whose batches they are."""

    producer_id: int
    epoch: int


Encode = Callable[[ProducerIdentity, int], bytes | bytearray]
"""Makes a transactional batch of a producer; the second argument is its first sequence number."""


class Batch:
    """One batch on its way. `place` says for people where its records come from."""

    __slots__ = ("is_written", "payload", "place")

    def __init__(self, payload: bytes | bytearray, place: str) -> None:
        self.payload = payload
        self.place = place
        self.is_written = False

    def take(self, code: int | None, *, is_first: bool) -> ErrorCode | None:
        """Take the code of an answer, None if there was none; returns the error if it is final.

        `is_first`: all batches before it are written. If not, a broker refuses it as out of order, and it is
        sent again.
        """
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self.is_written = True
            return None
        if code is None or (code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not is_first):
            return None
        return ErrorCode(code) if code in list(ErrorCode) else ErrorCode.UNKNOWN_SERVER_ERROR


class Outgoing:
    """The batches of one producer for one partition, in order."""

    def __init__(self, producer: ProducerIdentity) -> None:
        self._producer = producer
        self._sequence = 0
        self._records: list[NewRecord] = []
        self._records_bytes = 0
        self.batches: deque[Batch] = deque()

    @property
    def bytes(self) -> int:
        """How much waits."""
        return self._records_bytes + sum(len(batch.payload) for batch in self.batches)

    def add(self, record: NewRecord) -> None:
        """Add a record; many of them share a batch."""
        self._records.append(record)
        self._records_bytes += len(record.value or b"") + len(record.key or b"") + RECORD_OVERHEAD_BYTES
        self._records_bytes += sum(len(key) + len(value or b"") for key, value in record.headers)
        if self._records_bytes >= BATCH_BYTES:
            self.seal()

    def seal(self) -> None:
        """Make a batch of the records that wait for one."""
        if not self._records:
            return
        records, self._records, self._records_bytes = self._records, [], 0
        self.add_batch(
            len(records),
            lambda producer, sequence: build_batch(
                records,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                base_sequence=sequence,
                transactional=True,
            ),
        )

    def add_batch(self, records: int, encode: Encode, place: str = "") -> None:
        """Add a batch that was encoded elsewhere, after the records that came before it."""
        self.seal()
        self.batches.append(Batch(encode(self._producer, self._sequence), place))
        self._sequence = (self._sequence + records) % SEQUENCES

    def window(self) -> list[Batch]:
        """The next batches to send, all at once."""
        return list(self.batches)[:IN_FLIGHT_MAX]

    def take(self, window: list[Batch], codes: list[int | None]) -> ErrorCode | None:
        """Take the answers to a window, and drop what is written. Returns the first error."""
        is_first, found = True, None
        for batch, code in zip(window, codes, strict=True):
            error = batch.take(code, is_first=is_first)
            found = found or error
            is_first = is_first and batch.is_written
        while self.batches and self.batches[0].is_written:
            self.batches.popleft()
        return found
