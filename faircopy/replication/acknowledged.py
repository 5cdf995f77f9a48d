"""What followers have acknowledged: up to where each has each journal, life by life.

Pure.
"""

from __future__ import annotations

from collections.abc import KeysView
from typing import NamedTuple

from faircopy.arbiter.record import NOBODY
from faircopy.replication.life import Life
from faircopy.replication.messages import AckedJournal


class Acked(NamedTuple):
    """Up to where a follower has a journal in its files, and up to where on its disk."""

    written: int
    synced: int


NOTHING_ACKED = Acked(0, 0)
NEVER = NOBODY, NOTHING_ACKED


class Acknowledged:
    """The acks of all followers of one leader, by journal. Only journals that are there are counted.

    Of each broker the newest life that has acked the journal is known, and no earlier one: what that had, it
    may have lost since.
    """

    __slots__ = ("_by_journal",)

    def __init__(self) -> None:
        self._by_journal: dict[bytes, dict[int, tuple[int, Acked]]] = {}

    @property
    def journals(self) -> KeysView[bytes]:
        """The identities of all journals that are there."""
        return self._by_journal.keys()

    def open(self, journal: bytes) -> None:
        """A journal is there from now on. Nobody has anything of it."""
        self._by_journal[journal] = {}

    def close(self, journal: bytes) -> None:
        """A journal is deleted; acks of it may still come."""
        self._by_journal.pop(journal, None)

    def note(self, follower: Life, acked: AckedJournal) -> None:
        """A follower has acked this much. Within a life, an ack takes nothing back."""
        followers = self._by_journal.get(acked.identity)
        if followers is None:
            return
        incarnation, before = followers.get(follower.broker, NEVER)
        if follower.incarnation < incarnation:
            return
        if follower.incarnation > incarnation:
            before = NOTHING_ACKED
        now = Acked(max(acked.written, before.written), max(acked.synced, before.synced))
        followers[follower.broker] = follower.incarnation, now

    def of(self, follower: Life, journal: bytes) -> Acked:
        """How much of a journal a follower has acked in this very life."""
        incarnation, acked = self._by_journal[journal].get(follower.broker, NEVER)
        return acked if incarnation == follower.incarnation else NOTHING_ACKED
