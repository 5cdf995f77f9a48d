"""What a partition knows of its producers: epochs and last sequence numbers (KIP-98, on idempotence).

Pure: batches go in, verdicts come out.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice, takewhile
from typing import NamedTuple
from zlib import crc32

from faircopy.errors import FaircopyError
from faircopy.journal.entry import TransactionId
from faircopy.storage.system import Buffer
from faircopy.wire.batch import HEADER_BYTES, BatchHeader

REMEMBERED_BATCHES = 5  # as many as a client may have in flight with idempotence on
UNKNOWN_OFFSET = -1
DROPPED = -2
"""The offset of a batch that an abort has dropped: it gets none."""
NO_FINGERPRINT = 0
SEQUENCE_MODULUS = 1 << 31
BEFORE_THE_FIRST = SEQUENCE_MODULUS - 1  # the sequence after it is 0


class RejectedBatch(FaircopyError):
    """A batch does not follow those before it. Nothing was written."""


class StaleEpoch(RejectedBatch):
    """The batch comes from an older instance of its producer."""


class OutOfOrderSequence(RejectedBatch):
    """A batch before this one is missing."""


class UnknownProducer(OutOfOrderSequence):
    """Batches before this one are missing, and none of its producer's epoch was ever written here."""


class ConflictingSequence(OutOfOrderSequence):
    """Other records were written with the batch's sequence after an abort: one of the two came late."""


class StaleDuplicate(RejectedBatch):
    """The batch was written before, too long ago to know its offset."""


class SeenBatch(NamedTuple):
    """A batch that was written: its sequences and its base offset. For a draft: the lowest it may get, or
    DROPPED. `fingerprint`: that of its records, if its producer has aborted before, or NO_FINGERPRINT.
    """

    first_sequence: int
    last_sequence: int
    base_offset: int
    fingerprint: int = NO_FINGERPRINT


def fingerprint_of(header: BatchHeader, batch: Buffer) -> int:
    """What is equal for a batch that is sent again, and differs for other records. The batch's own CRC is of
    no use: the broker computes it anew if it sets timestamps.
    """
    return crc32(memoryview(batch)[HEADER_BYTES:], header.base_timestamp_ms & 0xFFFFFFFF)


class BranchOutcome(NamedTuple):
    """How a transaction ended here. `rank`: that of its APPLY, or NO_RANK."""

    transaction: TransactionId
    is_applied: bool
    rank: int


class ProducerState:
    """One producer in one partition: which sequence may come next, and how its last transactions ended.

    | `seen`  | `is_forgotten` | the next batch of this epoch |
    |---------|----------------|------------------------------|
    | empty   | no             | begins at 0: nothing of this epoch was written here (unknown, or fenced) |
    | empty   | yes            | may begin anywhere: what was written is not known any more |
    | batches | no             | follows the last; all before it were written |
    | batches | yes            | follows the last; nothing is known of those before the first |

    A producer that is older than its topic may begin anywhere as well, if Produce lets it.

    A client that aborts may keep its epoch. librdkafka gives up the batches that were not acked, and gives
    their sequences to its next messages, whether they were written or not. So after an abort, what the abort
    has dropped is no duplicate of anything: the next batch may begin where a dropped one did. A dropped batch
    may also arrive late, as the first of the next transaction, in the place of what has its sequence now.
    So once a producer `follows_abort`, a batch counts as sent again only if its records are the same. If they
    differ, or only some of its sequences were taken, its transaction can't be trusted (ConflictingSequence).
    """

    __slots__ = ("epoch", "follows_abort", "is_forgotten", "last_position", "outcomes", "seen")

    def __init__(
        self,
        epoch: int,
        seen: tuple[SeenBatch, ...] = (),
        last_position: int = 0,
        outcomes: Iterable[BranchOutcome] = (),
        *,
        is_forgotten: bool = False,
        follows_abort: bool = False,
    ) -> None:
        self.epoch = epoch
        self.seen = seen
        self.last_position = last_position
        self.outcomes = {outcome.transaction: outcome for outcome in outcomes}
        self.is_forgotten = is_forgotten
        self.follows_abort = follows_abort

    def find_duplicate(self, header: BatchHeader, batch: Buffer) -> SeenBatch | None:
        """The earlier arrival of this very batch, if any. Raises RejectedBatch if it can't be accepted."""
        if header.producer_epoch < self.epoch:
            raise StaleEpoch(
                f"producer {header.producer_id} sent epoch {header.producer_epoch}, but "
                f"{self.epoch} is in use: another instance has taken its place"
            )
        if header.producer_epoch > self.epoch:
            self._ensure_follows(header, BEFORE_THE_FIRST)
            return None
        for seen in self._standing():
            if seen.first_sequence == header.base_sequence and seen.last_sequence == header.last_sequence:
                self._ensure_same(seen, header, batch)
                return seen
        if self.seen and not self._takes_the_place_of_dropped(header):
            self._ensure_follows(header, self.seen[-1].last_sequence)
        elif not self.seen and header.base_sequence and not self.is_forgotten:
            raise UnknownProducer(
                f"producer {header.producer_id} sent sequence {header.base_sequence} of epoch "
                f"{header.producer_epoch}, but nothing of this epoch was written here: begin at 0"
            )
        return None

    def _standing(self) -> tuple[SeenBatch, ...]:
        """The batches that no abort has dropped. The dropped ones are the last, until another one comes."""
        if not self.follows_abort:
            return self.seen
        return tuple(takewhile(lambda seen: seen.base_offset != DROPPED, self.seen))

    def _takes_the_place_of_dropped(self, header: BatchHeader) -> bool:
        return any(
            seen.base_offset == DROPPED and seen.first_sequence == header.base_sequence for seen in self.seen
        )

    def _ensure_same(self, seen: SeenBatch, header: BatchHeader, batch: Buffer) -> None:
        if seen.fingerprint not in (NO_FINGERPRINT, fingerprint_of(header, batch)):
            raise ConflictingSequence(
                f"producer {header.producer_id} sent sequence {header.base_sequence} of epoch "
                f"{header.producer_epoch} twice since it aborted a transaction, with other records: one of "
                f"the two is from before the abort"
            )

    def _ensure_follows(self, header: BatchHeader, last_sequence: int) -> None:
        ahead = (header.base_sequence - last_sequence - 1) % SEQUENCE_MODULUS
        if ahead == 0:
            return
        problem = (
            f"producer {header.producer_id} sent sequence {header.base_sequence} of epoch "
            f"{header.producer_epoch}, but the next one here is {(last_sequence + 1) % SEQUENCE_MODULUS}"
        )
        if ahead > SEQUENCE_MODULUS // 2:
            # One that was forgotten may have begun with a batch that overtook this one.
            if self.follows_abort and not self.is_forgotten and header.producer_epoch == self.epoch:
                raise ConflictingSequence(f"{problem}: it, or what has its place, is from before an abort")
            if self._has_written_all_before(header):
                raise StaleDuplicate(f"{problem}: it was written before")
        raise OutOfOrderSequence(f"{problem}: batches between are missing")

    def _has_written_all_before(self, header: BatchHeader) -> bool:
        """Whether that is certain. Clients take a duplicate for an ack: a wrong guess loses messages."""
        return bool(self.seen) and not self.is_forgotten and header.producer_epoch == self.epoch

    def note(self, epoch: int, batch: SeenBatch, position: int) -> None:
        """Remember a batch that was written at journal position `position`."""
        self.last_position = position
        if epoch > self.epoch:
            self._begin(epoch, batch)
        else:
            # It may begin elsewhere if it is older than the topic: then nothing is known of what was before.
            self.is_forgotten = self.is_forgotten or (not self.seen and batch.first_sequence != 0)
            self.seen = (*self._standing()[-REMEMBERED_BATCHES + 1 :], batch)

    def forget_outcomes(self, finished: int) -> int:
        """Forget how transactions up to this number ended, and return how many. One that ended after another
        with a greater number goes with that one. The search ends at the first that stays, so that many cost
        no more than one.
        """
        over = sum(1 for _ in takewhile(lambda each: each.number <= finished, self.outcomes))
        if over:
            self.outcomes = dict(islice(self.outcomes.items(), over, None))
        return over

    def forget_sequences(self) -> None:
        """Accept any sequence next: a transaction was aborted, and it is not known what its client counts."""
        self.seen, self.is_forgotten, self.follows_abort = (), True, True

    def drop(self, batches: int) -> None:
        """An abort drops the last batches, so many at least: others may come in their places."""
        self.follows_abort = True
        first = max(len(self.seen) - batches, 0)
        dropped = (seen._replace(base_offset=DROPPED) for seen in self.seen[first:])
        self.seen = (*self.seen[:first], *dropped)

    def fence(self, epoch: int) -> None:
        """Accept nothing more from epochs before this one."""
        if epoch > self.epoch:
            self._begin(epoch)

    def _begin(self, epoch: int, *seen: SeenBatch) -> None:
        self.epoch, self.seen, self.is_forgotten, self.follows_abort = epoch, seen, False, False
