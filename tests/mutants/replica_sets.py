"""Mutants of replica sets: who leads, in which epoch, with which directory, and for how long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from faircopy.arbiter import joining, lease
from faircopy.arbiter.controller import Controller
from faircopy.arbiter.directory_note import Directory, DirectoryNote
from faircopy.arbiter.joining import Applicant, Known
from faircopy.arbiter.lease import Lease
from faircopy.arbiter.membership import Elected, Membership
from faircopy.arbiter.record import Grade, SetRecord
from faircopy.arbiter.registration import INCARNATIONS, Registered
from faircopy.arbiter.session import Session
from faircopy.broker.leadership import MemberOfASet
from faircopy.net.gate import Gate
from faircopy.storage.epochs import incarnation, note_incarnation
from faircopy.storage.local_notes import LocalNotes
from tests.mutants.registry import mutant, replaced


@mutant
def answer_in_doubt() -> Iterator[Any]:
    """B1: answers leave although the lease may have expired."""
    with replaced(Gate, "is_closed", property(lambda self: False)):
        yield


@mutant
def lead_in_an_epoch_of_ones_own() -> Iterator[Any]:
    """The leader of a set counts its directory's starts, and not the elections of the record."""
    real = MemberOfASet.take

    async def take(self: MemberOfASet, notes: LocalNotes, grade: Grade, address: str) -> Elected:
        own = incarnation(notes) + 1
        elected = await real(self, notes, grade, address)
        await note_incarnation(notes, own)
        return elected._replace(epoch=own)

    with replaced(MemberOfASet, "take", take):
        yield


@mutant
def go_on_in_the_epoch_of_a_former_life() -> Iterator[Any]:
    """A6: a broker whose former life has led leads on, without an election."""
    with (
        replaced(SetRecord, "is_led", lambda self, lives: self.leader in lives),
        replaced(Membership, "_is_leader", lambda self: self.record.leader == self.who.broker),
    ):
        yield


@mutant
def take_an_older_copy() -> Iterator[Any]:
    """B10: a directory joins, whichever its last life was."""

    def replica_of(note: DirectoryNote, known: Known) -> int | None:
        assert known.record is not None
        return note.broker if note.broker in known.record.replicas else known.record.replicas[0]

    with replaced(joining, "replica_of", replica_of):
        yield


@mutant
def trust_a_restored_arbiter() -> Iterator[Any]:
    """A directory joins although it has heard of a newer epoch than the record's."""
    real = joining.ensure_of_this_set

    def ensure_of_this_set(who: Applicant, directory: Directory, record: SetRecord) -> None:
        real(who, directory._replace(note=directory.note._replace(epoch=0)), record)

    with replaced(joining, "ensure_of_this_set", ensure_of_this_set):
        yield


@mutant
def elect_although_somebody_knows_more() -> Iterator[Any]:
    """Somebody is elected while a registered broker has heard of a newer epoch than the record's."""
    real = Controller._elected

    def elected(self: Controller, record: SetRecord, registered: dict[int, Registered]) -> SetRecord | None:
        unknowing = {broker: each._replace(known_epoch=0) for broker, each in registered.items()}
        return real(self, record, unknowing)

    with replaced(Controller, "_elected", elected):
        yield


@mutant
def make_a_lost_record_again() -> Iterator[Any]:
    """A start makes the record although its directory is of a set, or brokers of the set have lived."""
    real = joining.founded

    def founded(who: Applicant, directory: Directory, known: Known) -> SetRecord:
        note = directory.note._replace(is_member=False)
        return real(who, directory._replace(note=note), known._replace(newest={}))

    with replaced(joining, "founded", founded):
        yield


@mutant
def tell_nobody_of_a_loss() -> Iterator[Any]:
    """What a loss of power may have taken is not in the record."""
    real = SetRecord.join

    def join(self: SetRecord, broker: int, incarnation: int, grade: Grade) -> SetRecord:
        return real(self, broker, incarnation, Grade.DRAFTS)

    with replaced(SetRecord, "join", join):
        yield


@mutant
def settle_before_it_is_durable() -> Iterator[Any]:
    """A loss is out of the record before what follows from it is durable."""
    real = MemberOfASet.take

    async def take(self: MemberOfASet, notes: LocalNotes, grade: Grade, address: str) -> Elected:
        elected = await real(self, notes, grade, address)
        await self.settle()
        return elected

    with replaced(MemberOfASet, "take", take):
        yield


@mutant
def count_a_lease_from_the_answer() -> Iterator[Any]:
    """A lease is thought to begin when its holder hears that it was renewed, not when it asked."""
    real = Session._keep_lease

    async def keep_lease(self: Session) -> None:
        kept = self._lease
        kept.renewed = lambda asked_ms: Lease.renewed(kept, self._uptime_ms())  # type: ignore[method-assign]
        await real(self)

    with replaced(Session, "_keep_lease", keep_lease):
        yield


@mutant
def believe_that_all_clocks_run_alike() -> Iterator[Any]:
    """The holder of a lease relies on it up to its very end, by its own clock."""
    with replaced(lease, "MARGIN", 0.0):
        yield


@mutant
def begin_a_life_twice() -> Iterator[Any]:
    """A broker joins although another process has begun its next life meanwhile."""
    real = Session.transact

    async def transact(
        self: Session,
        expected: Mapping[str, int],
        changes: Mapping[str, bytes | None],
        bound: Iterable[str] = (),
    ) -> int:
        rest = {key: version for key, version in expected.items() if not key.startswith(INCARNATIONS)}
        return await real(self, rest, changes, bound)

    with replaced(Session, "transact", transact):
        yield
