"""Mutants of replication: who counts before something is durable, who may join, and what a proof covers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from faircopy.arbiter.record import SetRecord
from faircopy.replication import proof
from faircopy.replication.acknowledged import NEVER, Acked, Acknowledged
from faircopy.replication.in_sync import InSync, Promised
from faircopy.replication.life import Life
from faircopy.replication.messages import Challenge, Hello
from faircopy.replication.proof import Challenges, Role
from faircopy.replication.sets_in_force import SetsInForce
from tests.mutants.registry import mutant, replaced


@mutant
def take_a_late_write_for_a_failed_one() -> Iterator[Any]:
    """A7: a change is given up when the record is read as it was before."""
    real = SetsInForce.read

    def read(self: SetsInForce, record: SetRecord, version: int) -> None:
        real(self, record, version)
        if version == self.version:
            self.changed = None

    with replaced(SetsInForce, "read", read):
        yield


@mutant
def change_a_set_that_is_not_known() -> Iterator[Any]:
    """A8: another change is sent while the outcome of the one before is unknown, which counts no more."""
    real = SetsInForce.change

    def change(self: SetsInForce, changed: SetRecord) -> None:
        self.changed = None
        real(self, changed)

    with replaced(SetsInForce, "change", change):
        yield


@mutant
def count_nobody_before_the_write_has_landed() -> Iterator[Any]:
    """Who is about to be added need not have what becomes durable meanwhile."""
    with replaced(SetsInForce, "all", property(lambda self: (self.known,))):
        yield


@mutant
def count_nobody_who_is_about_to_go() -> Iterator[Any]:
    """Who is about to be removed need have nothing any more, although the write may fail."""
    with replaced(SetsInForce, "all", property(lambda self: (self.changed or self.known,))):
        yield


@mutant
def let_somebody_lag() -> Iterator[Any]:
    """All members but one are enough, as if a majority could be asked later."""
    real = InSync._others

    def others(self: InSync, sets: Iterable[Iterable[tuple[int, int]]]) -> frozenset[Life] | None:
        found = real(self, sets)
        return frozenset(sorted(found)[:-1]) if found else found

    with replaced(InSync, "_others", others):
        yield


@mutant
def count_acks_of_any_life() -> Iterator[Any]:
    """A8, A9: what a follower has acked in one life counts in every other."""

    def of(self: Acknowledged, follower: Life, journal: bytes) -> Acked:
        return self._by_journal[journal].get(follower.broker, NEVER)[1]

    with replaced(Acknowledged, "of", of):
        yield


@mutant
def let_anybody_join() -> Iterator[Any]:
    """A follower is added that lacks what is durable."""
    with replaced(InSync, "may_join", lambda self, follower, promised: True):
        yield


@mutant
def let_those_join_who_lack_drafts() -> Iterator[Any]:
    """A follower is added that has all that is durable, but not all acked drafts."""
    real = InSync.may_join

    def may_join(self: InSync, follower: Life, promised: Mapping[bytes, Promised]) -> bool:
        return real(self, follower, {each: was._replace(drafts=0) for each, was in promised.items()})

    with replaced(InSync, "may_join", may_join):
        yield


@mutant
def shrink_below_the_least() -> Iterator[Any]:
    """A14: members are removed although fewer than `min.insync.replicas` stay."""
    real = SetRecord.remove

    def remove(self: SetRecord, broker: int, min_in_sync: int) -> SetRecord:
        return real(self, broker, 1)

    with replaced(SetRecord, "remove", remove):
        yield


@mutant
def take_back_ones_own_proof() -> Iterator[Any]:
    """A proof holds in both directions."""
    real = proof.prove

    def prove(secret: bytes, role: Role, challenges: Challenges, hello: Hello, peer: Life) -> Hello:
        return real(secret, Role.LEADER, challenges, hello, peer)

    with replaced(proof, "prove", prove):
        yield


@mutant
def take_the_proof_of_another_link() -> Iterator[Any]:
    """A proof that was once heard is good for ever."""
    real = proof.prove
    same = Challenges(Challenge(bytes(32)), Challenge(bytes(32)))

    def prove(secret: bytes, role: Role, challenges: Challenges, hello: Hello, peer: Life) -> Hello:
        return real(secret, role, same, hello, peer)

    with replaced(proof, "prove", prove):
        yield
