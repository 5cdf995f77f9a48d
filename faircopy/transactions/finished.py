"""Which transactions no coordinator will ask for again, so that participants may forget how they ended.

This is not folded: it says what is *durable*. A new leader knows it from its journal, which is durable as far
as it was read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from faircopy.transactions.transaction import Producer

NOTHING_FINISHED = -1


class FinishedNumbers:
    """For each producer id, the number up to which all its transactions are durably over.

    Nothing is kept of producers that sleep (`Producers`): all of theirs are over, and nobody asks.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def of(self, producer_id: int) -> int:
        """The greatest number up to which all are over."""
        return self._numbers.get(producer_id, NOTHING_FINISHED)

    def recovered(self, producers: Iterable[Producer]) -> None:
        """Take over what an earlier leader knew. Call it when the journal is read, before it goes on."""
        self._numbers |= {producer.producer_id: all_over_up_to(producer) for producer in producers}

    def wakes(self, producer: Producer) -> None:
        """A producer that has slept is about to change."""
        self._numbers[producer.producer_id] = all_over_up_to(producer)

    def falls_asleep(self, producer: Producer) -> None:
        """A producer sleeps from now on."""
        self.forget(producer.producer_id)

    def once_durable(self, producer: Producer) -> Callable[[], None]:
        """What to call once everything that the journal holds now is durable."""
        # Count now: later, the table may hold ends of later transactions that are not durable.
        producer_id, number = producer.producer_id, all_over_up_to(producer)

        def durable() -> None:
            self._numbers[producer_id] = max(self.of(producer_id), number)

        return durable

    def forget(self, producer_id: int) -> None:
        """Forget a producer id that is no longer used."""
        self._numbers.pop(producer_id, None)


def all_over_up_to(producer: Producer) -> int:
    """The number before that of a producer's first transaction that is not over."""
    unfinished = [txid.number for txid in producer.ending]
    if producer.current is not None:
        unfinished.append(producer.current.id.number)
    return min(unfinished, default=producer.last_number + 1) - 1
