"""How entries are written in scripts of a coordinator. Transactions are T1, T2, ... as they appear."""

from __future__ import annotations

from typing import Any

from faircopy.copier.fold import DISCARD_PAYLOAD, FORGET_PAYLOAD
from faircopy.journal.entry import Entry, Kind, TransactionId
from faircopy.journal.identity import TopicIdPartition
from faircopy.transactions.metadata_entry import Payload, decode
from tests.scenarios.words import counted, word_of


class Labels:
    """Short names for transactions: their numbers say nothing to a reader."""

    def __init__(self) -> None:
        self._labels: dict[TransactionId, str] = {}

    def of(self, transaction: TransactionId) -> str:
        """The label of a transaction."""
        return self._labels.setdefault(transaction, f"T{len(self._labels) + 1}")

    def shorten(self, message: str) -> str:
        """A message, with labels for transactions."""
        for transaction, label in self._labels.items():
            message = message.replace(str(transaction), label)
        return message

    def of_data(self, entry: Entry, payload: bytes) -> str:
        """An entry of a data journal."""
        kind = Kind(entry.kind)
        match kind:
            case Kind.PLAIN:
                return f"PLAIN, {counted(entry.records, 'record')}"
            case Kind.DRAFT:
                return f"DRAFT {self.of(entry.transaction)}, {counted(entry.records, 'record')}"
            case Kind.DISCARD:
                fence_epoch, _ = DISCARD_PAYLOAD.unpack(payload)
                fence = (
                    f", fences below epoch {fence_epoch}"
                    if fence_epoch > entry.transaction.producer_epoch
                    else ""
                )
                return f"DISCARD {self.of(entry.transaction)}{fence}"
            case Kind.FORGET_PRODUCERS:
                producers = (fields[0] for fields in FORGET_PAYLOAD.iter_unpack(payload))
                return f"FORGET_PRODUCERS {', '.join(map(str, producers))}"
            case _:
                return f"{kind.name} {self.of(entry.transaction)}"

    def of_metadata(self, entry: Entry, payload: bytes) -> str:
        """An entry of a metadata journal."""
        kind, told = Kind(entry.kind), decode(payload)
        match kind:
            case Kind.FENCE:
                producer_id, epoch, _ = entry.transaction
                durable = ", durable" if told["durable"] else ""
                return f"FENCE {told['id']}: producer {producer_id}, epoch {epoch}{durable}"
            case Kind.BEGIN:
                return f"BEGIN {self.of(entry.transaction)} of {told['id']}"
            case Kind.FORGET:
                return f"FORGET {told['id']}"
            case Kind.UNCLEAN:
                return "UNCLEAN"
            case _:
                return f"{kind.name} {self.of(entry.transaction)}{listed(told)}"


def named_in(row: list[Any]) -> str:
    """The partition in a row, and whether its drafts are acked once they are fsynced."""
    return word_of(TopicIdPartition(*row[:2])) + (" (durable)" if row[3:] else "")


def listed(payload: Payload) -> str:
    """The partitions in an entry, and what else it says."""
    named = ", ".join(map(named_in, payload.get("partitions", ())))
    untold = ", its producer does not know" if payload.get("untold") else ""
    return f": {named}{untold}" if named else ""
