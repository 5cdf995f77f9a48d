"""The journals that a leader ships, and what its followers have of them.

Until the set's record says who is in sync, all replicas are: nothing is durable before all of them have it,
in the newest life of each that has begun a link. What a life has acknowledged stays on its disk when its link
is gone; what comes next waits until it is back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from faircopy.arbiter.record import SetRecord
from faircopy.journal.journal import Journal
from faircopy.replication.acknowledged import Acknowledged
from faircopy.replication.in_sync import InSync
from faircopy.replication.life import Life
from faircopy.replication.messages import AckedJournal
from faircopy.replication.sets_in_force import SetsInForce


class Led:
    """Belongs to the event loop. `record`: of the set, whose leader this broker is, in the life `own`."""

    def __init__(self, own: Life, record: SetRecord, *, is_synced_first: bool = True) -> None:
        self._own = own
        self._record = record
        self._journals: dict[bytes, Journal] = {}
        self._acks = Acknowledged()
        self._lives: dict[int, int] = {}
        self._version = 0
        sets = SetsInForce(self._set_of_lives(), self._version)
        replicas = len(record.replicas)
        self._in_sync = InSync(own, sets, self._acks, replicas, is_synced_first=is_synced_first)

    def __iter__(self) -> Iterator[Journal]:
        """All journals."""
        return iter(list(self._journals.values()))

    @property
    def epoch(self) -> int:
        """The epoch under which the journals are led."""
        return self._record.epoch

    @property
    def lives(self) -> dict[int, int]:
        """The incarnations whose acks count, by broker, with the leader's own."""
        return {**self._lives, self._own.broker: self._own.incarnation}

    def find(self, identity: bytes) -> Journal | None:
        """A journal; None if there is none, since its topic is deleted, for one."""
        return self._journals.get(identity)

    def open(self, journal: Journal) -> None:
        """A journal is led from now on; nobody has anything of it. It is open, raw or not."""
        self._journals[journal.identity] = journal
        self._acks.open(journal.identity)
        self._tell(journal)

    def close(self, identity: bytes) -> None:
        """A journal is deleted."""
        self._journals.pop(identity, None)
        self._acks.close(identity)

    def join(self, follower: Life) -> None:
        """A follower has begun a link in this life: what counts is what this life acknowledges."""
        self._lives[follower.broker] = follower.incarnation
        self._version += 1
        self._in_sync.read(self._set_of_lives(), self._version)
        for journal in self:
            self._tell(journal)

    def _set_of_lives(self) -> SetRecord:
        return replace(self._record, in_sync=self.lives, drafts=frozenset(self.lives))

    def note(self, follower: Life, acked: Iterable[AckedJournal]) -> None:
        """A follower has acknowledged this much."""
        for each in acked:
            journal = self.find(each.identity)
            if journal is not None:
                self._acks.note(follower, each)
                self._tell(journal)

    def _tell(self, journal: Journal) -> None:
        identity = journal.identity
        journal.note_replicated(self._in_sync.replicated(identity), self._in_sync.replicated_drafts(identity))
