"""What a member has yet to send to one partition: records become batches, batches get sequence numbers, and
what is too large for the topic is divided.

Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from faircopy.client.division import divided, following
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch

BATCH_BYTES = 256 << 10
IN_FLIGHT_MAX = 5
"""Batches of a partition that may be on their way at once: a broker knows the last five (KIP-98)."""
RECORD_OVERHEAD_BYTES = 32


class ProducerIdentity(NamedTuple):
    """Whose batches they are."""

    producer_id: int
    epoch: int


Encode = Callable[[ProducerIdentity, int], bytes | bytearray]
"""Makes a transactional batch of a producer; the second argument is its first sequence number."""
Describe = Callable[[int, int], str]
"""Says for people where records of a batch come from: those from one number to another, both included."""


def nowhere(first: int, last: int) -> str:
    """Where records come from of which nothing is known."""
    return ""


class Batch:
    """One batch on its way. `numbers` are those of its records, in the batch that was added."""

    __slots__ = ("_describe", "is_written", "numbers", "payload")

    def __init__(self, payload: bytes | bytearray, numbers: range, describe: Describe) -> None:
        self.payload = payload
        self.numbers = numbers
        self._describe = describe
        self.is_written = False

    @property
    def place(self) -> str:
        """Where its records come from, for people."""
        return self._describe(self.numbers[0], self.numbers[-1])

    def halves(self) -> tuple[Batch, Batch]:
        """Two batches in its place; it has several records."""
        middle = len(self.numbers) // 2
        first, second = divided(self.payload, middle)
        return (
            Batch(first, self.numbers[:middle], self._describe),
            Batch(second, self.numbers[middle:], self._describe),
        )

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

    def add_batch(self, records: int, encode: Encode, describe: Describe = nowhere) -> None:
        """Add a batch that was encoded elsewhere, after the records that came before it."""
        self.seal()
        self.batches.append(Batch(encode(self._producer, self._sequence), range(records), describe))
        self._sequence = following(self._sequence, records)

    def window(self) -> list[Batch]:
        """The next batches to send, all at once."""
        return list(self.batches)[:IN_FLIGHT_MAX]

    def take(self, window: list[Batch], codes: list[int | None]) -> ErrorCode | None:
        """Take the answers to a window, drop what is written, and divide what is too large. Returns the first
        error.
        """
        is_first, found = True, None
        for batch, code in zip(window, codes, strict=True):
            if code == ErrorCode.MESSAGE_TOO_LARGE and len(batch.numbers) > 1:
                self._divide(batch)
            else:
                found = found or batch.take(code, is_first=is_first)
            is_first = is_first and batch.is_written
        while self.batches and self.batches[0].is_written:
            self.batches.popleft()
        return found

    def _divide(self, batch: Batch) -> None:
        """Put two batches in the place of one. Sequence numbers count records, so those of others stay."""
        at = self.batches.index(batch)
        del self.batches[at]
        for half in reversed(batch.halves()):
            self.batches.insert(at, half)
