"""A leader, followers and an arbiter, as a table of numbers. Anything may befall them.

Writes to the arbiter land at any time or never, and nobody is answered. Acks come late, twice or never. What
is read of the arbiter may be old. Followers are killed, lose power or all they have, and begin other lives.
The leader calls durable and acked all that it may, at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from faircopy.arbiter.record import Grade, IllegalChange, SetRecord
from faircopy.replication.acknowledged import Acknowledged
from faircopy.replication.in_sync import InSync, Promised
from faircopy.replication.life import Life
from faircopy.replication.messages import AckedJournal
from faircopy.replication.sets_in_force import SetsInForce

JOURNALS = (b"p" * 20, b"q" * 20)
BROKERS = (1, 2, 3, 4)
OWN = Life(1, 57)
MIN_IN_SYNC = 2
KILL, POWER, RUIN = range(3)
Change = Callable[[], SetRecord]


class Write(NamedTuple):
    """A record on its way to the arbiter, and what has to hold when it lands."""

    record: SetRecord
    version: int
    added: Life | None = None


class Copy:
    """What one broker has of each journal, in its present life."""

    def __init__(self) -> None:
        self.incarnation = 10
        self.is_registered = True
        self.grade = Grade.DRAFTS
        self.written = dict.fromkeys(JOURNALS, 0)
        self.synced = dict.fromkeys(JOURNALS, 0)


class SetWorld:
    """All of it, at one moment. Each event is a method that takes two numbers."""

    def __init__(self, *, is_synced_first: bool) -> None:
        self.is_synced_first = is_synced_first
        self.copies = {broker: Copy() for broker in BROKERS}
        self.copies[OWN.broker].incarnation = OWN.incarnation
        members = {1: OWN.incarnation, 2: 10, 3: 10}
        self.record = SetRecord("set", BROKERS, *OWN, 12, members, frozenset(members))
        self.version = 1
        self.reads = [(self.record, self.version)]
        self.writes: list[Write] = []
        self.acks_sent: list[tuple[Life, AckedJournal]] = []
        self.acks = Acknowledged()
        for journal in JOURNALS:
            self.acks.open(journal)
        sets = SetsInForce(self.record, self.version)
        self.in_sync = InSync(OWN, sets, self.acks, MIN_IN_SYNC, is_synced_first=is_synced_first)
        self.promised = dict.fromkeys(JOURNALS, Promised(0, 0))

    def happens(self, event: str, a: int, b: int) -> None:
        """One event. The leader then promises all that it may."""
        getattr(self, event)(a, b)
        own = self.copies[OWN.broker]
        durable = self.durable_in(own)
        for journal, promised in self.promised.items():
            self.promised[journal] = Promised(
                max(promised.durable, min(durable[journal], self.in_sync.replicated(journal))),
                max(promised.drafts, min(own.written[journal], self.in_sync.replicated_drafts(journal))),
            )

    def durable_in(self, copy: Copy) -> dict[bytes, int]:
        """What a loss of power, or only the end of a process, takes from nobody."""
        return copy.synced if self.is_synced_first else copy.written

    # -- journals --------------------------------------------------------------------------------------------

    def append(self, a: int, b: int) -> None:
        """The leader writes."""
        self.copies[OWN.broker].written[JOURNALS[a % 2]] += b

    def sync(self, a: int, b: int) -> None:
        """The leader syncs."""
        own = self.copies[OWN.broker]
        own.synced[JOURNALS[a % 2]] = own.written[JOURNALS[a % 2]]

    def ship(self, a: int, b: int) -> None:
        """A follower gets something, and writes it."""
        copy = self.follower(a)
        for journal in JOURNALS:
            whole = self.copies[OWN.broker].written[journal]
            copy.written[journal] = min(copy.written[journal] + b, whole)

    def sync_follower(self, a: int, b: int) -> None:
        """A follower syncs."""
        copy = self.follower(a)
        copy.synced[JOURNALS[b % 2]] = copy.written[JOURNALS[b % 2]]

    def ack(self, a: int, b: int) -> None:
        """A follower says what it has, unless it has not begun its life yet."""
        broker, copy = BROKERS[1 + a % 3], self.follower(a)
        if copy.is_registered:
            life = Life(broker, copy.incarnation)
            self.acks_sent += [
                (life, AckedJournal(each, copy.written[each], copy.synced[each])) for each in JOURNALS
            ]

    def hear(self, a: int, b: int) -> None:
        """The leader hears an ack, an old one or the last."""
        if self.acks_sent:
            last = len(self.acks_sent) - 1
            self.acks.note(*self.acks_sent[max(last - a, 0)])

    def keep_up(self, a: int, b: int) -> None:
        """A follower has all that the leader has, and the leader hears so."""
        self.ship(a, 1 << 40)
        for journal in range(len(JOURNALS)):
            self.sync_follower(a, journal)
        self.report(a, 0)

    def report(self, a: int, b: int) -> None:
        """A follower says what it has, and the leader hears so at once."""
        if self.follower(a).is_registered:
            self.ack(a, 0)
            for number in range(len(JOURNALS)):
                self.hear(number, 0)

    def follower(self, a: int) -> Copy:
        """One of the followers."""
        return self.copies[BROKERS[1 + a % 3]]

    # -- lives -----------------------------------------------------------------------------------------------

    def restart(self, a: int, b: int) -> None:
        """A follower's life is over; some ends take something."""
        copy = self.follower(a)
        copy.incarnation += 1
        copy.is_registered = False
        if b % 3 == POWER:
            copy.written = dict(copy.synced)
            copy.grade = min(copy.grade, Grade.DURABLE if self.is_synced_first else Grade.UNKNOWN)
        elif b % 3 == RUIN:
            copy.written, copy.synced = dict.fromkeys(JOURNALS, 0), dict.fromkeys(JOURNALS, 0)
            copy.grade = Grade.UNKNOWN

    def register(self, a: int, b: int) -> None:
        """It begins the next one, says in the record what it has lost, and acks what it has."""
        broker, copy = BROKERS[1 + a % 3], self.follower(a)
        if not copy.is_registered:
            self.put(self.record.join(broker, copy.incarnation, copy.grade))
            copy.is_registered, copy.grade = True, Grade.DRAFTS
            if b % 2:
                self.report(a, 0)
            else:
                self.ack(a, 0)

    # -- the arbiter -----------------------------------------------------------------------------------------

    def put(self, record: SetRecord) -> None:
        """The record is another one from now on."""
        self.record = record
        self.version += 1
        self.reads.append((record, self.version))

    def read(self, a: int, b: int) -> None:
        """The leader reads, if only an old copy."""
        self.in_sync.read(*self.reads[max(len(self.reads) - 1 - a // 2, 0)])

    def add(self, a: int, b: int) -> None:
        """The leader wants one more member, in one of the lives whose acks are on their way."""
        lives = sorted({life for life, _ in self.acks_sent})
        if lives:
            life = lives[-1 - (a % len(lives))]
            self._send(lambda: self.in_sync.add(life, self.promised), life)

    def remove(self, a: int, b: int) -> None:
        """The leader wants one member less."""
        self._send(lambda: self.in_sync.remove(BROKERS[1 + a % 3]))

    def _send(self, change: Change, added: Life | None = None) -> None:
        version = self.in_sync.sets.version
        try:
            self.writes.append(Write(change(), version, added))
        except IllegalChange:
            return

    def confirm(self, a: int, b: int) -> None:
        """The leader writes once more what it knows."""
        self.writes.append(Write(self.in_sync.sets.known, self.in_sync.sets.version))

    def land(self, a: int, b: int) -> None:
        """A write comes to the arbiter, and does something if nothing is in its way."""
        if self.writes:
            write = self.writes.pop(a % len(self.writes))
            if self.can_land(write):
                self.put(write.record)

    def can_land(self, write: Write) -> bool:
        """Whether all is still as the write wants it."""
        is_of_this_life = write.added is None or self.is_present(write.added)
        return write.version == self.version and is_of_this_life

    def is_present(self, life: Life) -> bool:
        """Whether a life is not over."""
        return self.copies[life.broker].incarnation == life.incarnation

    # -- what has to hold ------------------------------------------------------------------------------------

    def losses(self) -> Iterator[str]:
        """What would be lost if a member of a record were elected that is in force, or may be in a moment."""
        for record in (self.record, *(write.record for write in self.writes if self.can_land(write))):
            for broker in record.in_sync:
                if self.is_present(Life(broker, record.in_sync[broker])):
                    yield from self._lacks(broker, has_drafts=broker in record.drafts)

    def _lacks(self, broker: int, *, has_drafts: bool) -> Iterator[str]:
        copy = self.copies[broker]
        durable = self.durable_in(copy)
        for journal, promised in self.promised.items():
            if durable[journal] < promised.durable:
                yield f"broker {broker} lacks what is durable: {durable[journal]} < {promised.durable}"
            if has_drafts and copy.written[journal] < promised.drafts:
                yield f"broker {broker} lacks acked drafts: {copy.written[journal]} < {promised.drafts}"

    def settle(self) -> None:
        """From now on, all goes well: everybody lives, writes are answered, all is replicated."""
        self.writes.clear()
        for a in range(3):
            self.happens("register", a, 0)
        self.catch_up()
        self.read_present()
        for _ in BROKERS:
            for number in range(len(BROKERS)):
                self.happens("add", number, 0)
            while self.writes:
                self.happens("land", 0, 0)
            self.read_present()

    def read_present(self) -> None:
        """The leader learns what is in force."""
        self.put(self.record)
        self.happens("read", 0, 0)

    def catch_up(self) -> None:
        """All followers have all that the leader has, and say so."""
        self.acks_sent.clear()
        for journal in range(len(JOURNALS)):
            self.happens("sync", journal, 0)
        for a in range(3):
            self.happens("keep_up", a, 0)
