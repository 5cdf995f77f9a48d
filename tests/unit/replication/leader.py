"""A leader of three brokers with two journals, without anything else of it, and words for what it hears."""

from __future__ import annotations

from faircopy.arbiter.record import SetRecord
from faircopy.replication.acknowledged import Acknowledged
from faircopy.replication.in_sync import InSync, Promised
from faircopy.replication.life import Life
from faircopy.replication.messages import AckedJournal
from faircopy.replication.sets_in_force import SetsInForce

P, Q = b"p" * 20, b"q" * 20
BROKERS = (1, 2, 3)
OWN, B, C = Life(1, 57), Life(2, 31), Life(3, 88)
VERSION = 100


def record_of(*in_sync: Life, drafts: set[int] | None = None) -> SetRecord:
    """The record with these members, of whom all have all drafts unless it is said who has."""
    with_drafts = drafts if drafts is not None else {each.broker for each in in_sync}
    return SetRecord("set", BROKERS, *OWN, 12, dict(in_sync), frozenset(with_drafts))


class Leader:
    """Its acks, its sets, and what it has promised."""

    def __init__(self, record: SetRecord, min_in_sync: int = 2, *, is_synced_first: bool = True) -> None:
        self.acks = Acknowledged()
        for journal in (P, Q):
            self.acks.open(journal)
        sets = SetsInForce(record, VERSION)
        self.in_sync = InSync(OWN, sets, self.acks, min_in_sync, is_synced_first=is_synced_first)
        self.promised = dict.fromkeys((P, Q), Promised(0, 0))

    def hears(self, follower: Life, written: int, synced: int, *journals: bytes) -> None:
        """An ack of some journals, or of all."""
        for journal in journals or (P, Q):
            self.acks.note(follower, AckedJournal(journal, written, synced))

    def promises(self, durable: int, drafts: int) -> None:
        """It has called this much durable, and acked this much of drafts, in both journals."""
        self.promised = dict.fromkeys((P, Q), Promised(durable, drafts))

    @property
    def bounds(self) -> tuple[int, int]:
        """Up to where a journal may be durable, and its drafts be acked."""
        return self.in_sync.replicated(P), self.in_sync.replicated_drafts(P)
