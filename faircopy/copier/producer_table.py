"""The producers of a partition. Many are idle for ever, so these take little room.

Flink takes a new transactional id for each checkpoint and subtask. So with each checkpoint all producers fall
*asleep*: they are kept as their stored rows. A producer wakes when somebody asks for it.

What a producer is does not depend on whether it sleeps. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from faircopy.copier.producer_row import decode_producer, encode_producer, last_position_in, outcomes_in
from faircopy.copier.producers import ProducerState


class ProducerTable:
    """The producers of a partition by id."""

    def __init__(self) -> None:
        self._awake: dict[int, ProducerState] = {}
        self._asleep: dict[int, bytes] = {}

    def get(self, producer_id: int) -> ProducerState | None:
        """A producer, which may be changed before the next `sleep`; None if it is not known."""
        producer = self._awake.get(producer_id)
        if producer is None and producer_id in self._asleep:
            row = self._asleep.pop(producer_id)
            producer = self._awake[producer_id] = decode_producer(producer_id, row)
        return producer

    def add(self, producer_id: int, producer: ProducerState) -> None:
        """Add a producer that is not known yet."""
        self._awake[producer_id] = producer

    def pop(self, producer_id: int) -> ProducerState | None:
        """Remove a producer, and return it; None if it is not known."""
        producer = self.get(producer_id)
        self._awake.pop(producer_id, None)
        return producer

    def __contains__(self, producer_id: int) -> bool:
        return producer_id in self._awake or producer_id in self._asleep

    def __len__(self) -> int:
        return len(self._awake) + len(self._asleep)

    def items(self) -> Iterator[tuple[int, ProducerState]]:
        """All producers, to look at: none of them wakes."""
        yield from self._awake.items()
        for producer_id, row in self._asleep.items():
            yield producer_id, decode_producer(producer_id, row)

    # -- rows ------------------------------------------------------------------------------------------------

    def row(self, producer_id: int) -> bytes | None:
        """The row of a producer; None if it is not known."""
        producer = self._awake.get(producer_id)
        return encode_producer(producer) if producer is not None else self._asleep.get(producer_id)

    def restore(self, producer_id: int, row: bytes) -> int:
        """Add a producer that sleeps. Returns how many of its transactions have ended here. Raises
        struct.error if this is no row of a producer.
        """
        outcomes = outcomes_in(row)
        self._asleep[producer_id] = row
        return outcomes

    def sleep(self) -> None:
        """Put all to sleep. Who holds one must not change it any more."""
        awake, self._awake = self._awake, {}
        for producer_id, producer in awake.items():
            self._asleep[producer_id] = encode_producer(producer)

    # -- some of them ----------------------------------------------------------------------------------------

    def with_outcomes(self) -> set[int]:
        """The ids of those with transactions that have ended here, and whose outcome is still known."""
        awake = {producer_id for producer_id, producer in self._awake.items() if producer.outcomes}
        return awake | {producer_id for producer_id, row in self._asleep.items() if outcomes_in(row)}

    def last_positions(self) -> Iterator[tuple[int, int]]:
        """The position of each producer's last batch, and the producer's id."""
        for producer_id, producer in self._awake.items():
            yield producer.last_position, producer_id
        for producer_id, row in self._asleep.items():
            yield last_position_in(row), producer_id
