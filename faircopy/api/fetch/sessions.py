"""Fetch sessions (KIP-227): a client of many partitions names only those that it has read from since its last
Fetch, and is told only of those that have something new.

A session belongs to a connection, and ends with it. So there is at most one per connection, and a client that
comes back by another one is told that its session is not there: it then names all its partitions again.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

from faircopy.catalogue.topics import NAME_CHARS_MAX
from faircopy.errors import FaircopyError
from faircopy.hosting.leader_epoch import UNNAMED
from faircopy.net.exchange import ClientConnection
from faircopy.partition.hosted import HostedPartition
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.fetch import FetchPartition, FetchRequest, FetchResult, TopicKey

NO_SESSION = 0
FIRST_EPOCH, LAST_EPOCH = 1, 2**31 - 1
BEGIN, WITHOUT = 0, -1
"""Epochs of a full Fetch: with one, the client offers to begin a session."""
PARTITIONS_MAX = 100_000
"""Of all sessions of a broker; each takes about half a kilobyte, besides the name of its topic."""

Key = tuple[TopicKey, int]


class SessionRefused(FaircopyError):
    """A Fetch can't go on with its session."""

    def __init__(self, code: ErrorCode, what: str) -> None:
        super().__init__(what)
        self.code = code


class KnownOffsets(NamedTuple):
    """What the client was told of a partition last."""

    end_offset: int
    start_offset: int


class FetchSession:
    """One client's session: its partitions, in the order in which they have their turn."""

    def __init__(self, number: int, request: FetchRequest) -> None:
        self.id = number
        self.has_ids = request.has_ids
        self.next_epoch = FIRST_EPOCH
        self.partitions = {asked[:2]: asked for asked in request.partitions}
        self._told: dict[Key, KnownOffsets] = {}

    def go_on(self, request: FetchRequest) -> None:
        """Note what the next Fetch changes."""
        self.next_epoch = self.next_epoch + 1 if self.next_epoch < LAST_EPOCH else FIRST_EPOCH
        for asked in request.partitions:
            self.partitions[asked[:2]] = asked
        for key in request.forgotten:
            self.partitions.pop(key, None)
            self._told.pop(key, None)

    def has_nothing_new(self, asked: FetchPartition, partition: HostedPartition | None) -> bool:
        """Whether the client knows all that there is to say of a partition."""
        if partition is None or partition.failure is not None or asked.last_fetched_epoch != UNNAMED:
            return False
        log = partition.log
        return (
            asked.fetch_offset == log.end_offset
            and self._told.get(asked[:2]) == (log.end_offset, log.start_offset)
            and asked.current_leader_epoch in (UNNAMED, partition.journal.leader_epoch)
        )

    def tell(self, results: list[FetchResult], *, all_of_them: bool) -> list[FetchResult]:
        """The results that the client is told: those with something new, or all. Partitions of which it gets
        messages have their next turn after the others.
        """
        return [result for result in results if self._is_told(result) or all_of_them]

    def _is_told(self, result: FetchResult) -> bool:
        key = result[:2]
        asked = self.partitions.get(key)
        if asked is None:
            return True
        if result.records:
            del self.partitions[key]
            self.partitions[key] = asked
        before, told = self._told.get(key), KnownOffsets(result.high_watermark, result.log_start_offset)
        self._told[key] = told
        return bool(result.records or result.error_code or result.diverging) or told != before


class Asking(NamedTuple):
    """What a Fetch asks for: all of its partitions, and the session that it begins or goes on with."""

    request: FetchRequest
    partitions: list[FetchPartition]
    session: FetchSession | None = None
    goes_on: bool = False

    @property
    def session_id(self) -> int:
        """The session that the client is told."""
        return NO_SESSION if self.session is None else self.session.id

    def has_nothing_new(self, asked: FetchPartition, partition: HostedPartition | None) -> bool:
        """Whether the answer may leave out a partition."""
        return self.goes_on and self.session is not None and self.session.has_nothing_new(asked, partition)

    def told(self, results: list[FetchResult]) -> list[FetchResult]:
        """The results that the client is told."""
        return results if self.session is None else self.session.tell(results, all_of_them=not self.goes_on)


class FetchSessions:
    """The sessions of a broker's connections."""

    def __init__(self, partitions_max: int = PARTITIONS_MAX) -> None:
        self._partitions_max = partitions_max
        self._by_connection: WeakKeyDictionary[ClientConnection, FetchSession] = WeakKeyDictionary()
        self._last_id = NO_SESSION

    def ask(self, connection: ClientConnection, request: FetchRequest) -> Asking:
        """Begin a session, go on with one, or end it, as the request says. Raises SessionRefused.

        If there is no room for another session, the client is not given one, and keeps naming all.
        """
        if request.session_epoch not in (BEGIN, WITHOUT):
            return self._go_on(connection, request)
        self._by_connection.pop(connection, None)
        offers = request.session_epoch == BEGIN and bool(request.partitions)
        if not offers or not self._has_room_for(request.partitions):
            return Asking(request, request.partitions)
        self._last_id = self._last_id % LAST_EPOCH + 1
        session = self._by_connection[connection] = FetchSession(self._last_id, request)
        return Asking(request, request.partitions, session)

    def _go_on(self, connection: ClientConnection, request: FetchRequest) -> Asking:
        session = self._by_connection.get(connection)
        if session is None or session.id != request.session_id:
            raise SessionRefused(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                f"this connection has no fetch session {request.session_id}",
            )
        if request.session_epoch != session.next_epoch:
            raise SessionRefused(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"fetch session {session.id} is at epoch {session.next_epoch}, not {request.session_epoch}",
            )
        if request.has_ids != session.has_ids:
            raise SessionRefused(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
                f"topics of fetch session {session.id} are named by {'id' if session.has_ids else 'name'}, "
                f"which can't change",
            )
        added = [asked for asked in request.partitions if asked[:2] not in session.partitions]
        if added and not self._has_room_for(added):
            del self._by_connection[connection]
            raise SessionRefused(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                f"fetch sessions have no room for more than {self._partitions_max} partitions of topics that "
                f"there can be: session {session.id} is ended",
            )
        session.go_on(request)
        return Asking(request, list(session.partitions.values()), session, goes_on=True)

    def _has_room_for(self, added: list[FetchPartition]) -> bool:
        """Whether the sessions may have these partitions as well. Names that no topic can have may be of any
        length, and would take memory.
        """
        kept = sum(len(session.partitions) for session in self._by_connection.values())
        is_little = all(len(asked.topic) <= NAME_CHARS_MAX for asked in added)
        return is_little and kept + len(added) <= self._partitions_max
