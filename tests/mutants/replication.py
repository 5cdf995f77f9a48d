"""Mutants of replication: who counts before something is durable, who may join, what a proof covers; and whom
a follower follows, what it takes, and what it acks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from faircopy.arbiter.record import SetRecord
from faircopy.journal.entry import HEADER_BYTES, Entry
from faircopy.journal.entry_format import PAYLOAD_CRC_AT
from faircopy.journal.journal import Journal
from faircopy.journal.watermarks import EVERYWHERE
from faircopy.replication import entry_reader, proof
from faircopy.replication.acknowledged import NEVER, Acked, Acknowledged
from faircopy.replication.entry_reader import EntryReader, LeadersEntry
from faircopy.replication.feed import Feed
from faircopy.replication.feeder import Feeder
from faircopy.replication.followers import Followers
from faircopy.replication.in_sync import InSync, Promised
from faircopy.replication.led import Led
from faircopy.replication.life import Life
from faircopy.replication.messages import AckedJournal, Challenge, Data, Hello
from faircopy.replication.proof import Challenges, Role
from faircopy.replication.replica import Replica
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


@mutant
def take_a_gap() -> Iterator[Any]:
    """Entries of a later place are taken as if they came next."""
    real = Replica._ensure_is_next

    def ensure_is_next(self: Replica, data: Data) -> Journal:
        if data.identity in self._compared:
            marks = self._compared[data.identity].watermarks
            data = data._replace(position=marks.appended + self._reader.partial_bytes(data.identity))
        return real(self, data)

    with replaced(Replica, "_ensure_is_next", ensure_is_next):
        yield


@mutant
def check_no_crc_of_copies() -> Iterator[Any]:
    """A payload that has changed on its way is appended, with the CRC that it should have."""

    def checked(self: EntryReader, entry: Entry, whole: memoryview) -> LeadersEntry:
        payload_crc = int.from_bytes(whole[PAYLOAD_CRC_AT : PAYLOAD_CRC_AT + 4], "little")
        return LeadersEntry(entry, whole[HEADER_BYTES:], payload_crc)

    with replaced(EntryReader, "_checked", checked):
        yield


@mutant
def ack_as_synced_what_is_written() -> Iterator[Any]:
    """What is written is acked as synced."""
    real = Replica.take_moved

    def take_moved(self: Replica) -> list[AckedJournal]:
        return [each._replace(synced=each.written) for each in real(self)]

    with replaced(Replica, "take_moved", take_moved):
        yield


@mutant
def copy_entries_of_unknown_kinds() -> Iterator[Any]:
    """An entry of a newer version is appended, although nobody here could fold it."""
    with replaced(entry_reader, "KINDS", frozenset(range(256))):
        yield


@mutant
def take_what_was_not_compared() -> Iterator[Any]:
    """A journal that is open is fed by a leader with which it was not compared."""
    real = Replica._ensure_is_next

    def ensure_is_next(self: Replica, data: Data) -> Journal:
        is_open = data.identity in self._openings and data.identity not in self._compared
        return self._openings[data.identity].result() if is_open else real(self, data)

    with replaced(Replica, "_ensure_is_next", ensure_is_next):
        yield


@mutant
def follow_an_older_leader() -> Iterator[Any]:
    """I8: a leader of a lower epoch takes the place of one of a higher epoch."""
    with replaced(Feed, "rank", property(lambda self: (0, 0))):
        yield


@mutant
def show_what_nobody_else_has() -> Iterator[Any]:
    """A17: a leader that starts folds what it has once its followers were compared, before they have it."""
    real = Followers.barrier

    async def barrier(self: Followers, journals: Sequence[Journal]) -> None:
        for journal in journals:
            journal.note_replicated(EVERYWHERE, EVERYWHERE)
        await real(self, journals)

    with replaced(Followers, "barrier", barrier):
        yield


@mutant
def pass_the_barrier_with_empty_journals() -> Iterator[Any]:
    """A17: followers that have something of a journal that is empty at the leader are not waited for."""
    real = Followers.barrier

    async def barrier(self: Followers, journals: Sequence[Journal]) -> None:
        await real(self, [journal for journal in journals if journal.watermarks.appended])

    with replaced(Followers, "barrier", barrier):
        yield


@mutant
def wait_only_for_those_that_have_come() -> Iterator[Any]:
    """A replica that has never begun a link need have nothing."""
    real = Led.__init__

    def init(self: Led, *arguments: Any, **options: Any) -> None:
        real(self, *arguments, **options)
        self._in_sync._min_in_sync = 1
        self._in_sync._note_members()

    with replaced(Led, "__init__", init):
        yield


@mutant
def count_former_lives_of_followers() -> Iterator[Any]:
    """A8: what an earlier life of a follower has acked counts for the next one."""
    real = Led.join

    def join(self: Led, follower: Life) -> None:
        if follower.broker not in self._lives:
            real(self, follower)

    with replaced(Led, "join", join):
        yield


@mutant
def believe_acks_of_what_was_not_sent() -> Iterator[Any]:
    """A follower may ack more than it was sent."""
    with replaced(Feeder, "_ensure_sent", lambda self, acked: None):
        yield


@mutant
def lead_who_has_more() -> Iterator[Any]:
    """A follower that has what the leader lacks is fed all the same."""
    with replaced(Feeder, "_ensure_prefix", lambda self, journal, aligned: None):
        yield
