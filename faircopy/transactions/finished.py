"""Which transactions no coordinator will ask for again, so that participants may forget what they decided.

Not folded: it says what is *durable*, and it may die with the process. Participants then remember decided transactions
for a little longer, until their producer's next one is over.
"""

from __future__ import annotations

from collections.abc import Callable

from faircopy.transactions.transaction import Producer

NOTHING_FINISHED = -1


class FinishedNumbers:
    """For each producer id: all its transactions up to this number are over, durably."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def of(self, producer_id: int) -> int:
        """The greatest number up to which all are over."""
        return self._numbers.get(producer_id, NOTHING_FINISHED)

    def once_durable(self, producer: Producer) -> Callable[[], None]:
        """What to call when all that the journal holds by now is durable."""
        # Counted now: by then the table may hold ends of later transactions, which are not durable.
        producer_id, number = producer.producer_id, all_over_up_to(producer)

        def durable() -> None:
            self._numbers[producer_id] = max(self.of(producer_id), number)

        return durable

    def forget(self, producer_id: int) -> None:
        """The producer id is not used any more."""
        self._numbers.pop(producer_id, None)


def all_over_up_to(producer: Producer) -> int:
    """The number before the first transaction of a producer that is not over."""
    unfinished = [txid.number for txid in producer.ending]
    if producer.current is not None:
        unfinished.append(producer.current.id.number)
    return min(unfinished, default=producer.last_number + 1) - 1
