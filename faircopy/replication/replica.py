"""The journals of a follower: compared with the leader's, and fed with the leader's entries.

Nothing is ever cut here, so a journal has to be a prefix of the leader's, or the leader is refused. The
methods that wait are called one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from faircopy.errors import FaircopyError
from faircopy.journal.errors import Misplaced
from faircopy.journal.journal import Journal
from faircopy.journal.watermarks import Watermarks
from faircopy.loop.waiting import tell
from faircopy.replication.entry_reader import EntryReader
from faircopy.replication.errors import BadCopy, Refused
from faircopy.replication.frames import BadMessage
from faircopy.replication.histories import first_difference
from faircopy.replication.messages import AckedJournal, AlignedJournal, ComparedJournal, Data, MarkedJournal
from faircopy.replication.unwritten import Unwritten

UNWRITTEN_BYTES_MAX = 4 << 20
LET_GO_POLL_SECONDS = 0.01

OpenJournal = Callable[[bytes], Awaitable[Journal]]


class Replica:
    """All journals of one follower. Belongs to the event loop.

    `open_journal` gives the journal with this identity, opened raw, with everything in it fsynced. It is
    called again for a journal only if it raised FaircopyError. `on_moved` is called when `take_moved` has
    something to give.
    """

    def __init__(self, open_journal: OpenJournal, on_moved: Callable[[], None]) -> None:
        self._open_journal = open_journal
        self._on_moved = on_moved
        self._openings: dict[bytes, asyncio.Future[Journal]] = {}
        self._marks: dict[bytes, int] = {}
        self._compared: dict[bytes, Journal] = {}
        self._forgotten: set[bytes] = set()
        self._reader = EntryReader()
        self._unwritten = Unwritten()
        self._moved: dict[bytes, Journal] = {}
        self._waiter: asyncio.Future[None] | None = None

    # -- a link ----------------------------------------------------------------------------------------------

    def begin_link(self) -> None:
        """A new link begins: no journal is compared yet, and no entry is incomplete."""
        self._compared.clear()
        self._forgotten.clear()
        self._moved.clear()
        self._reader.forget()

    async def align(self, leaders: ComparedJournal) -> AlignedJournal:
        """Open a journal, unless it is open, and compare it with the leader's, once all that was appended to
        it is as safe as an fdatasync makes it.

        Raises Refused if the leader's journal can't be followed, BadMessage if it was compared before in this
        link.
        """
        identity = leaders.identity
        if identity in self._compared or identity in self._forgotten:
            raise BadMessage(f"journal {identity.hex()} is compared twice in one link")
        journal = await self._opened(identity)
        marks = journal.watermarks
        await self._until(lambda: is_safe(marks) or identity not in self._openings)
        if identity not in self._openings:
            raise Refused(f"journal {identity.hex()} is deleted here, and the leader still has it")
        mark = self.mark_of(identity)
        ensure_prefix(journal, mark, leaders)
        self._compared[identity] = journal
        return AlignedJournal(identity, marks.appended, marks.synced, mark)

    async def _opened(self, identity: bytes) -> Journal:
        if identity not in self._openings:
            self._openings[identity] = asyncio.ensure_future(self._open_journal(identity))
        opening = self._openings[identity]
        try:
            # A link that ends meanwhile must not end the opening: the next link needs the journal.
            return await asyncio.shield(opening)
        except FaircopyError as error:
            self._openings.pop(identity, None)
            raise Refused(f"journal {identity.hex()} can't be opened here: {error}") from error

    async def take(self, data: Data) -> None:
        """Append the entries that are whole with these bytes, and request that they are synced. Returns when
        little is not written yet, so on a full disk it waits.

        Raises BadMessage, BadCopy, Refused. What came before the flaw is appended.
        """
        if data.identity in self._forgotten:
            return
        journal = self._ensure_is_next(data)
        try:
            self._append(journal, data)
        finally:
            journal.request_sync()
            self._unwritten.note(journal)
        await self._until(lambda: self._unwritten.size <= UNWRITTEN_BYTES_MAX)

    def _ensure_is_next(self, data: Data) -> Journal:
        journal = self._compared.get(data.identity)
        if journal is None:
            raise BadMessage(f"data of journal {data.identity.hex()}, which was not compared in this link")
        expected = journal.watermarks.appended + self._reader.partial_bytes(data.identity)
        if data.position != expected:
            raise BadMessage(
                f"data of journal {data.identity.hex()} for position {data.position}, not {expected}"
            )
        return journal

    def _append(self, journal: Journal, data: Data) -> None:
        for entry, payload, payload_crc in self._reader.take(data):
            try:
                journal.append_copy(entry, payload, payload_crc)
            except Misplaced as error:
                raise BadCopy(
                    f"the entry for position {entry.position} of journal {data.identity.hex()} can't follow: "
                    f"{error}"
                ) from error

    async def _until(self, has_come: Callable[[], bool]) -> None:
        """Wait until this is so. Only moves of journals can make it so."""
        while not has_come():
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    # -- what has moved --------------------------------------------------------------------------------------

    def note_moved(self, identity: bytes) -> None:
        """The written or synced position of a journal has moved (`JournalOptions.on_moved`)."""
        self._unwritten.note_moved(identity)
        self._wake()
        if identity in self._compared:
            self._moved[identity] = self._compared[identity]
            self._on_moved()

    def take_moved(self) -> list[AckedJournal]:
        """Where the compared journals are that have moved since the last call."""
        moved, self._moved = self._moved, {}
        positions = ((identity, journal.watermarks) for identity, journal in moved.items())
        return [AckedJournal(identity, marks.written, marks.synced) for identity, marks in positions]

    def _wake(self) -> None:
        if self._waiter is not None:
            tell(self._waiter)

    # -- marks, deletions ------------------------------------------------------------------------------------

    def mark(self, marked: MarkedJournal) -> None:
        """A journal is durable in the set up to here. Ignored if the journal is not open here."""
        if marked.identity in self._openings:
            self._marks[marked.identity] = max(marked.durable, self.mark_of(marked.identity))

    def mark_of(self, identity: bytes) -> int:
        """The highest durable position that was heard of a journal; 0 if none was."""
        return self._marks.get(identity, 0)

    def journals(self) -> list[Journal]:
        """All journals that are open."""
        return [each.result() for each in self._openings.values() if is_open(each)]

    async def delete(self, identity: bytes) -> None:
        """A journal's topic is deleted: when this returns, nothing uses its files."""
        opening = self._openings.get(identity)
        self.forget(identity)
        if opening is None:
            return
        await asyncio.wait([opening])
        if is_open(opening):
            journal = opening.result()
            journal.abandon()
            while journal.is_at_work:
                await asyncio.sleep(LET_GO_POLL_SECONDS)

    def forget(self, identity: bytes) -> None:
        """A journal's topic is deleted. What still comes of it in this link is ignored."""
        self._openings.pop(identity, None)
        self._marks.pop(identity, None)
        self._unwritten.forget(identity)
        self._moved.pop(identity, None)
        if self._compared.pop(identity, None) is not None:
            self._forgotten.add(identity)
        if self._reader.partial_bytes(identity):
            self._reader.forget()
        self._wake()


def is_open(opening: asyncio.Future[Journal]) -> bool:
    """Whether a journal was opened, without an error."""
    return opening.done() and not opening.cancelled() and opening.exception() is None


def is_safe(marks: Watermarks) -> bool:
    """Whether all that was appended is as safe in this replica as it will be without more entries."""
    return (marks.synced if marks.is_synced_first else marks.written) == marks.appended


def ensure_prefix(journal: Journal, mark: int, leaders: ComparedJournal) -> None:
    """Raise Refused unless a journal can be a prefix of the leader's, from where the leader still has it."""
    name, end = f"journal {leaders.identity.hex()}", journal.watermarks.appended
    if end > leaders.end:
        raise Refused(
            f"{name} ends at position {end} here, and at {leaders.end} in the leader: the leader lacks what "
            f"this broker has. An older copy of a directory leads: stop it, and start the newest directory"
        )
    if mark > leaders.end:
        raise Refused(
            f"{name} is known to be durable up to position {mark}, and ends at {leaders.end} in the leader: "
            f"the leader has lost something. An older copy of a directory leads: stop it, and start the "
            f"newest directory"
        )
    if end < leaders.start:
        raise Refused(
            f"{name} ends at position {end} here, and begins at {leaders.start} in the leader: what this "
            f"broker lacks is reclaimed. Copy the leader's directory"
        )
    place = first_difference(journal.epochs, leaders, end)
    if place is not None:
        raise Refused(
            f"{name} was written by other leaders here than in the leader, from position {place} on (leader "
            f"epochs here: {journal.epochs}): the two directories have parted. Copy the leader's directory"
        )
