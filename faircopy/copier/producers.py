"""What a partition knows of its producers: epochs and the last sequence numbers (KIP-98, sections on idempotence).

Pure: batches go in, verdicts come out.
"""

from __future__ import annotations

from typing import NamedTuple

from faircopy.errors import FaircopyError
from faircopy.journal.entry import TransactionId
from faircopy.wire.batch import BatchHeader

REMEMBERED_BATCHES = 5  # as many as a client may have in flight with idempotence on
UNKNOWN_OFFSET = -1
SEQUENCE_MODULUS = 1 << 31


class RejectedBatch(FaircopyError):
    """A batch does not follow the ones before it; nothing was written."""


class StaleEpoch(RejectedBatch):
    """The batch comes from an older instance of its producer."""


class OutOfOrderSequence(RejectedBatch):
    """A batch before this one is missing."""


class StaleDuplicate(RejectedBatch):
    """The batch was written before, too long ago to tell where."""


class SeenBatch(NamedTuple):
    """A batch that was written: its sequences, and where it went (UNKNOWN_OFFSET for a draft)."""

    first_sequence: int
    last_sequence: int
    base_offset: int


class Producer:
    """One producer in one partition."""

    __slots__ = ("decided", "epoch", "last_position", "seen")

    def __init__(self, epoch: int, seen: tuple[SeenBatch, ...] = (), last_position: int = 0) -> None:
        self.epoch = epoch
        self.seen = seen
        self.last_position = last_position
        self.decided: list[TransactionId] = []

    def find_duplicate(self, header: BatchHeader) -> SeenBatch | None:
        """The earlier arrival of this very batch, if there is one. Raises a RejectedBatch if it can't be taken."""
        if header.producer_epoch < self.epoch:
            raise StaleEpoch(
                f"producer {header.producer_id} sent epoch {header.producer_epoch}, and {self.epoch} is in use: "
                f"another instance has taken its place"
            )
        if header.producer_epoch > self.epoch:
            self._ensure_follows(header, SEQUENCE_MODULUS - 1)
            return None
        for batch in self.seen:
            if batch.first_sequence == header.base_sequence and batch.last_sequence == header.last_sequence:
                return batch
        if self.seen:
            self._ensure_follows(header, self.seen[-1].last_sequence)
        return None

    def _ensure_follows(self, header: BatchHeader, last_sequence: int) -> None:
        ahead = (header.base_sequence - last_sequence - 1) % SEQUENCE_MODULUS
        if ahead == 0:
            return
        problem = (
            f"producer {header.producer_id} sent sequence {header.base_sequence}, "
            f"after {last_sequence} of epoch {header.producer_epoch}"
        )
        if ahead > SEQUENCE_MODULUS // 2 and header.producer_epoch == self.epoch:
            raise StaleDuplicate(f"{problem}: it was written before")
        raise OutOfOrderSequence(f"{problem}: batches between are missing")

    def note(self, epoch: int, batch: SeenBatch, position: int) -> None:
        """Remember a batch that was written at `position` of the journal."""
        self.last_position = position
        if epoch > self.epoch:
            self.epoch, self.seen = epoch, (batch,)
        else:
            self.seen = (*self.seen[-REMEMBERED_BATCHES + 1 :], batch)

    def forget_sequences(self) -> None:
        """Take any sequence next."""
        self.seen = ()

    def fence(self, epoch: int) -> None:
        """Take nothing from epochs before this one any more."""
        if epoch > self.epoch:
            self.epoch, self.seen = epoch, ()
