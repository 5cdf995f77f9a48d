"""What all have who may be in sync, as far as the leader knows.

    durable       of a journal   min(where the leader itself has it, `replicated`)
    acked drafts  of a journal   min(where the leader has written it, `replicated_drafts`)

`replicated` is what every member of every set that may be in force has acked, in the life that the set names;
the leader is a member that needs no acks. A set with fewer members than `min.insync.replicas` makes nothing
durable. With drafts it is the same, for those members that have all drafts.

Both are bounds for what comes, and take nothing back: what was once durable stays so. They go back when a set
changes, and must: a member that is added has all that is durable, but not all that the others have acked
ahead of the leader's own fsync.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import NamedTuple

from faircopy.arbiter.record import IllegalChange, SetRecord
from faircopy.journal.watermarks import EVERYWHERE
from faircopy.replication.acknowledged import Acked, Acknowledged
from faircopy.replication.life import Life
from faircopy.replication.sets_in_force import SetsInForce

NOTHING = 0

_written: Callable[[Acked], int] = attrgetter("written")
_synced: Callable[[Acked], int] = attrgetter("synced")


class Promised(NamedTuple):
    """What was ever called durable in a journal, and up to where drafts were acked."""

    durable: int
    drafts: int


class InSync:
    """The sets that may be in force, and what their members have.

    `own`: the leader in its life. `acks` is filled by others. `is_synced_first`: durable is what is fsynced;
    else the page cache is enough. After each ack, ask for the journals that it names; after `read`, for all.
    """

    __slots__ = ("_acks", "_has_drafts", "_has_durable", "_is_durable_at", "_min_in_sync", "_own", "sets")

    def __init__(
        self, own: Life, sets: SetsInForce, acks: Acknowledged, min_in_sync: int, *, is_synced_first: bool
    ) -> None:
        self.sets = sets
        self._own = own
        self._acks = acks
        self._min_in_sync = min_in_sync
        self._is_durable_at = _synced if is_synced_first else _written
        self._note_members()

    # -- positions -------------------------------------------------------------------------------------------

    def replicated(self, journal: bytes) -> int:
        """Up to where a journal is durable, as far as it is so in the leader; 0 to `EVERYWHERE`."""
        return self._acked_by(self._has_durable, journal, self._is_durable_at)

    def replicated_drafts(self, journal: bytes) -> int:
        """Up to where drafts in a journal may be acked, as far as the leader has written them."""
        return self._acked_by(self._has_drafts, journal, _written)

    def _acked_by(self, others: Iterable[Life] | None, journal: bytes, of: Callable[[Acked], int]) -> int:
        if others is None:
            return NOTHING
        return min((of(self._acks.of(each, journal)) for each in others), default=EVERYWHERE)

    # -- the sets --------------------------------------------------------------------------------------------

    def read(self, record: SetRecord, version: int) -> None:
        """The store had this record at some time."""
        self.sets.read(record, version)
        self._note_members()

    def may_join(self, follower: Life, promised: Mapping[bytes, Promised]) -> bool:
        """Whether a follower has acked, in this very life (A9), all that was promised in each journal."""
        return all(
            self._has_all(self._acks.of(follower, journal), promised[journal])
            for journal in self._acks.journals
        )

    def _has_all(self, acked: Acked, promised: Promised) -> bool:
        return self._is_durable_at(acked) >= promised.durable and acked.written >= promised.drafts

    def add(self, follower: Life, promised: Mapping[bytes, Promised]) -> SetRecord:
        """The record with one more member, which counts from now on: write it next. The write has to compare
        `sets.version`, and the follower's incarnation (A9). Raises IllegalChange.
        """
        changed = self.sets.known.add(*follower)
        if not self.may_join(follower, promised):
            raise IllegalChange(f"{follower} lacks what is durable (epoch {changed.epoch})")
        return self._change(changed)

    def remove(self, broker: int) -> SetRecord:
        """The record without a member, which counts until the write of it is known to have landed. Raises
        IllegalChange, also if too few would stay (A14).
        """
        return self._change(self.sets.known.remove(broker, self._min_in_sync))

    def _change(self, changed: SetRecord) -> SetRecord:
        self.sets.change(changed)
        self._note_members()
        return changed

    def _note_members(self) -> None:
        self._has_durable = self._others(record.in_sync.items() for record in self.sets.all)
        self._has_drafts = self._others(
            [(each, record.in_sync[each]) for each in record.drafts] for record in self.sets.all
        )

    def _others(self, sets: Iterable[Iterable[tuple[int, int]]]) -> frozenset[Life] | None:
        """All members of all sets but the leader; None if a set has too few."""
        members = [frozenset(map(Life._make, each)) for each in sets]
        if any(len(each) < self._min_in_sync for each in members):
            return None
        return frozenset().union(*members) - {self._own}
