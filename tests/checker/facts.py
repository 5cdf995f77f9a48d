"""The facts of a history, gathered once: who wrote each value, where it was read, and the order of values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tests.checker.history import (
    Committed,
    End,
    Final,
    KeyCommitted,
    Loss,
    Operation,
    Poll,
    Read,
    Snapshot,
    Transaction,
    Value,
)

Place = tuple[str, int]  # partition and offset


class Facts:
    """Tables over one history. Transactions are identified by their number in the history."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self.transactions: list[Transaction] = []
        self.polls: dict[str, list[Poll]] = defaultdict(list)  # by consumer, in order
        self.finals: list[Final] = []
        self.snapshots: list[Snapshot] = []
        self.ends: list[End] = []
        self.committed: list[Committed] = []
        self.keys: list[KeyCommitted] = []
        self.losses: list[float] = []
        self.writer: dict[Value, int] = {}
        self.values_at: dict[Place, dict[Value, None]] = defaultdict(dict)
        self.places_of: dict[Value, dict[Place, None]] = defaultdict(dict)
        self.first_read: dict[Value, float] = {}
        for operation in operations:
            self._take(operation)
        self.final_values = {read.value for final in self.finals for read in final.reads}
        self.order = self._orders()

    def _take(self, operation: Operation) -> None:
        match operation:
            case Transaction():
                number = len(self.transactions)
                self.transactions.append(operation)
                for send in operation.sends:
                    self.writer[send.value] = number
                    if send.offset is not None:
                        self._note_place(Read(send.partition, send.offset, send.value))
                self._note_reads(operation.reads, operation.ended)
            case Poll():
                self.polls[operation.process].append(operation)
                self._note_reads(operation.reads, operation.time)
            case Final():
                self.finals.append(operation)
                self._note_reads(operation.reads, None)
            case End():
                self.ends.append(operation)
            case Committed():
                self.committed.append(operation)
            case KeyCommitted():
                self.keys.append(operation)
            case Loss():
                self.losses.append(operation.time)
            case Snapshot():
                self.snapshots.append(operation)
                self._note_reads(operation.reads, operation.time)

    def _note_reads(self, reads: list[Read], time: float | None) -> None:
        for read in reads:
            self._note_place(read)
            if time is not None and time < self.first_read.get(read.value, float("inf")):
                self.first_read[read.value] = time

    def _note_place(self, read: Read) -> None:
        self.values_at[read.partition, read.offset][read.value] = None
        self.places_of[read.value][read.partition, read.offset] = None

    def ends_of(self, number: int) -> dict[str, int]:
        """The offset after the last known message of a transaction, by partition."""
        ends: dict[str, int] = {}
        for send in self.transactions[number].sends:
            for partition, offset in self.places_of.get(send.value, ()):
                ends[partition] = max(ends.get(partition, 0), offset + 1)
        return ends

    def _orders(self) -> dict[str, list[Value]]:
        """The values of each partition, by offset."""
        offsets: dict[str, list[tuple[int, Value]]] = defaultdict(list)
        for (partition, offset), values in self.values_at.items():
            offsets[partition] += [(offset, value) for value in values]
        return {
            partition: [value for _, value in sorted(rows, key=lambda row: row[0])]
            for partition, rows in offsets.items()
        }

    @property
    def is_complete(self) -> bool:
        """Whether there are final reads, each from its partition's start to its end."""
        return bool(self.finals) and all(
            len(final.reads) >= final.end_offset - final.start_offset for final in self.finals
        )
