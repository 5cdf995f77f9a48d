"""Feeding one follower over one link: what it lacks of each journal, and how far each is durable.

A journal is compared first. Then the follower gets what it lacks, out of the leader's own files. It is the
same work whether it was away for long or is a moment behind: whenever a journal has moved, it is sent up to
where it is synced here. That is between two entries, so at most one entry of the whole link is incomplete.
Nothing is kept in memory but which journals have moved, and how far each was sent.

How far journals are durable in the set goes with the heartbeat: no commit waits for a follower to know it,
and each transaction would wake all followers for it, several times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from faircopy.journal.errors import DamagedJournal
from faircopy.journal.journal import Journal
from faircopy.journal.pieces import Piece
from faircopy.loop.waiting import until_one_ends
from faircopy.replication.errors import LinkLost, Refused, RefusedByPeer
from faircopy.replication.frames import BadMessage
from faircopy.replication.histories import ends_of
from faircopy.replication.led import Led
from faircopy.replication.life import Life
from faircopy.replication.link import Link
from faircopy.replication.messages import (
    AckedJournal,
    Acks,
    AlignedJournal,
    Alignment,
    ComparedJournal,
    Comparison,
    Data,
    MarkedJournal,
    Marks,
    Message,
    Refusal,
)
from faircopy.replication.soundness import CONTENT_BYTES_MAX
from faircopy.replication.timing import Timing
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.failures import StorageFailure
from faircopy.storage.file import NotCached

Item = TypeVar("Item")

COMPARED_ROWS_MAX = 10_000
MARKED_AT_ONCE = 4_000


class Feeder:
    """One link to one follower, for as long as it lives. Belongs to the event loop.

    `marks` makes the message that tells these journals. `heard` is called after each message of the follower,
    with the journals that it names. If there is a `first` journal, no other one is compared before the
    follower has what was synced of it when the link began: it says where the others are.
    """

    def __init__(
        self,
        link: Link,
        follower: Life,
        led: Led,
        disk: DiskPool,
        timing: Timing,
        marks: Callable[[tuple[MarkedJournal, ...]], Marks],
        heard: Callable[[Iterable[bytes]], None],
        first: bytes | None = None,
    ) -> None:
        self.follower = follower
        self.is_short = False
        self._link = link
        self._led = led
        self._disk = disk
        self._timing = timing
        self._marks = marks
        self._heard = heard
        self._first, self._first_end = first, synced_of(led, first)
        self._after_first: dict[bytes, None] = {}
        self._asked: set[bytes] = set()
        self._sent: dict[bytes, int] = {}
        self._marked: dict[bytes, int] = {}
        self._moved = dict.fromkeys(journal.identity for journal in led)
        self._unmarked: dict[bytes, None] = {}
        self._due = asyncio.Event()

    @property
    def has_compared_all(self) -> bool:
        """Whether the follower has what the leader has, or the beginning of it, in all journals."""
        return self.has_compared(journal.identity for journal in self._led)

    def has_compared(self, identities: Iterable[bytes]) -> bool:
        """The same of these journals."""
        return all(identity in self._sent for identity in identities)

    def note_moved(self, identity: bytes) -> None:
        """More of a journal is synced here, or the journal is new."""
        self._moved[identity] = None
        self._due.set()
        self.note_acked(identity)

    def note_acked(self, identity: bytes) -> None:
        """More of a journal may be durable in the set."""
        self._unmarked[identity] = None

    async def run(self) -> None:
        """Feed the follower until the link ends: raises why. That is LinkLost, BadMessage, Refused,
        RefusedByPeer, DamagedJournal or StorageFailure.
        """
        await until_one_ends(self._speak(), self._beat(), self._listen())

    # -- to the follower -------------------------------------------------------------------------------------

    async def _speak(self) -> None:
        while True:
            moved, self._moved = self._moved, {}
            self._compare(moved)
            for identity in moved:
                await self._feed(identity)
            await self._link.drain()
            await self._due.wait()
            self._due.clear()

    async def _beat(self) -> None:
        """Let the follower hear that the leader is there, and how far journals are durable by now, as far as
        that is news.
        """
        while True:
            await asyncio.sleep(self._timing.heartbeat_seconds)
            acked, self._unmarked = self._unmarked, {}
            for some in portions(list(self._news(acked)), MARKED_AT_ONCE):
                self._link.send(self._marks(tuple(some)))
                await self._link.drain()

    def _compare(self, identities: Iterable[bytes]) -> None:
        """Ask what the follower has of journals that it was not asked for."""
        new = [each for each in identities if each not in self._asked and each not in self._sent]
        if self._first is not None:
            self._after_first |= dict.fromkeys(each for each in new if each != self._first)
            new = [each for each in new if each == self._first]
        journals = [journal for journal in map(self._led.find, new) if journal is not None]
        self._asked.update(journal.identity for journal in journals)
        for some in in_messages(list(map(compared, journals))):
            is_last = bool(journals) and some[-1].identity == journals[-1].identity
            self._link.send(Comparison(tuple(some), is_last))

    async def _feed(self, identity: bytes) -> None:
        """Send a journal up to where it is synced now, unless it is not compared yet, or gone."""
        journal, sent = self._led.find(identity), self._sent.get(identity)
        if journal is None:
            self._forget(identity)
            return
        if sent is None:
            return
        up_to = journal.watermarks.synced
        while sent < up_to:
            try:
                piece = await self._piece(journal, sent, up_to)
            except (StorageFailure, DamagedJournal):
                if self._led.find(identity) is journal:
                    raise
                return  # it was deleted meanwhile
            self._link.send(Data(identity, *piece))
            sent = self._sent[identity] = sent + len(piece.content)
            await self._link.drain()

    async def _piece(self, journal: Journal, position: int, up_to: int) -> Piece:
        size = min(CONTENT_BYTES_MAX, up_to - position)
        try:
            return journal.piece(position, size, is_cached=True)
        except NotCached:
            return await self._disk.run(lambda: journal.piece(position, size, is_cached=False))

    def _news(self, identities: Iterable[bytes]) -> Iterator[MarkedJournal]:
        for identity in identities:
            journal = self._led.find(identity)
            if journal is not None and identity in self._sent:
                durable = journal.watermarks.durable
                if durable > self._marked.get(identity, 0):
                    self._marked[identity] = durable
                    yield MarkedJournal(identity, durable)

    def _forget(self, identity: bytes) -> None:
        """A journal is deleted."""
        self._asked.discard(identity)
        self._sent.pop(identity, None)
        self._marked.pop(identity, None)

    # -- from the follower -----------------------------------------------------------------------------------

    async def _listen(self) -> None:
        while True:
            self._heard(self._take(await self._next()))

    async def _next(self) -> Message:
        try:
            async with asyncio.timeout(self._timing.silence_seconds):
                return await self._link.receive()
        except TimeoutError:
            raise LinkLost(f"nothing has come for {self._timing.silence_seconds:g} s") from None

    def _take(self, message: Message) -> list[bytes]:
        """Note what a message says. Returns the journals that it names."""
        if isinstance(message, Alignment):
            for aligned in message.journals:
                self._align(aligned)
        elif isinstance(message, Acks):
            self.is_short = message.is_short
            for acked in message.journals:
                self._ensure_sent(acked)
            self._note(message.journals)
        elif isinstance(message, Refusal):
            raise RefusedByPeer(f"{self.follower} refuses: {message.reason}")
        else:
            raise BadMessage(f"a {type(message).__name__}, which no follower sends")
        return [journal.identity for journal in message.journals]

    def _align(self, aligned: AlignedJournal) -> None:
        """The follower has this much of a journal, and what the leader has there is the same."""
        identity = aligned.identity
        if identity not in self._asked:
            if self._led.find(identity) is None:
                return  # it was deleted meanwhile
            raise BadMessage(f"journal {identity.hex()} is aligned, and nobody has asked for it")
        self._asked.discard(identity)
        journal = self._led.find(identity)
        if journal is None:
            return
        self._ensure_prefix(journal, aligned)
        self._sent[identity] = aligned.end
        self._note([AckedJournal(identity, aligned.end, aligned.synced)])
        self.note_moved(identity)

    def _note(self, acked: Sequence[AckedJournal]) -> None:
        self._led.note(self.follower, acked)
        if any(each.identity == self._first and each.written >= self._first_end for each in acked):
            self._first = None
            for identity in self._after_first:
                self.note_moved(identity)

    def _ensure_prefix(self, journal: Journal, aligned: AlignedJournal) -> None:
        """Raise Refused unless what the follower has, and knows to be durable, is here as well."""
        synced, start = journal.watermarks.synced, journal.start_position
        if max(aligned.end, aligned.mark) > synced:
            raise Refused(
                f"{journal.directory} ends at position {synced} at the leader, and {self.follower} has it up "
                f"to {aligned.end} and knows it to be durable up to {aligned.mark}: the leader's directory "
                f"has lost what was there, or is an older copy"
            )
        if aligned.end < start:
            raise Refused(
                f"{journal.directory} begins at position {start} at the leader, and {self.follower} has it "
                f"up to {aligned.end}: stop both, and let the follower begin with a copy of the leader's "
                f"directory"
            )

    def _ensure_sent(self, acked: AckedJournal) -> None:
        sent = self._sent.get(acked.identity)
        if sent is None and self._led.find(acked.identity) is None:
            return  # it was deleted meanwhile
        if sent is None or acked.written > sent:
            raise BadMessage(
                f"an ack of journal {acked.identity.hex()} up to {acked.written}, which was sent up to {sent}"
            )


def synced_of(led: Led, identity: bytes | None) -> int:
    """Up to where a journal is synced; 0 if there is none."""
    journal = led.find(identity) if identity is not None else None
    return journal.watermarks.synced if journal is not None else 0


def compared(journal: Journal) -> ComparedJournal:
    """What a follower is to compare: what is synced here of a journal."""
    start, end = journal.start_position, journal.watermarks.synced
    return ComparedJournal(journal.identity, start, end, ends_of(journal.epochs, start, end))


def in_messages(journals: Sequence[ComparedJournal]) -> Iterator[list[ComparedJournal]]:
    """The journals, as many at a time as a message holds. Each has few epochs, and some may have many."""
    some: list[ComparedJournal] = []
    rows = 0
    for journal in journals:
        rows += 1 + len(journal.epochs)
        if some and rows > COMPARED_ROWS_MAX:
            yield some
            some, rows = [], 1 + len(journal.epochs)
        some.append(journal)
    if some:
        yield some


def portions(items: list[Item], size: int) -> Iterator[list[Item]]:
    """The items, so many at a time; one empty portion if there are none."""
    return (items[at : at + size] for at in range(0, max(len(items), 1), size))
