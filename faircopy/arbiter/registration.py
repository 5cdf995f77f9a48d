"""A broker joins its replica set, in a life that nobody else has.

    record               JSON of `SetRecord`
    incarnations/<id>    JSON of `Incarnation`: the broker's newest life; it stays when that is over
    brokers/<id>         JSON of `Registered`; it goes with the lease

One write begins the life, says in the record what it still has, and registers it. Before that, its token is
noted in the directory: if the start is cut short, the next one knows the life that it finds at the arbiter.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import NamedTuple

from faircopy.arbiter.directory_note import Directory, DirectoryNote
from faircopy.arbiter.joining import Applicant, Incarnation, Known, is_follower, joined
from faircopy.arbiter.record import SetRecord, decode, encode
from faircopy.arbiter.session import Session
from faircopy.errors import FaircopyError
from faircopy.storage.versioned_map import ABSENT, Conflict, Versioned

log = logging.getLogger(__name__)

RECORD = "record"
BROKERS = "brokers/"
INCARNATIONS = "incarnations/"


class Registered(NamedTuple):
    """A broker that lives. `address`: where clients find it. `host`: its machine, for people. `known_epoch`:
    the newest record that its directory has heard of. `link`: where a follower waits for its leader.
    """

    incarnation: int
    address: str
    host: str
    known_epoch: int
    link: str = ""


StoreNote = Callable[[DirectoryNote], Awaitable[None]]
"""Notes this in the data directory, durably."""


class Registration:
    """The registration of one broker, by one session, with a directory that it has locked."""

    def __init__(
        self,
        session: Session,
        who: Applicant,
        directory: Directory,
        store_note: StoreNote,
        fresh_token: Callable[[], str],
    ) -> None:
        self._session = session
        self._who = who
        self._directory = directory
        self._store_note = store_note
        self._fresh_token = fresh_token

    async def register(self, address: str, host: str, link: str = "") -> DirectoryNote:
        """Join the set. Returns what is noted in the directory then. Waits until earlier lives are over at
        the arbiter. Raises RegistrationRefused, LeaseLost.
        """
        await self._session.fence()
        note = self._directory.note
        while True:
            await until_free(self._session, self._former_lives(note))
            note, is_in = await self._join(self._of_a_set(note), address, host, link)
            if is_in:
                return note

    def _former_lives(self, note: DirectoryNote) -> set[int]:
        """The brokers one of which may have this directory still. A follower may have a copy of one that is
        in use.
        """
        record = record_in(self._session.get(RECORD))
        follows = record is not None and is_follower(self._who.broker, record)
        return {self._who.broker} if follows else {self._who.broker, note.broker}

    def _of_a_set(self, note: DirectoryNote) -> DirectoryNote:
        """The note of a directory that was never in a set, with the id of the one that it is to be in."""
        record = record_in(self._session.get(RECORD))
        if note.is_member or (note.set_id and record is None):
            return note
        if record is not None and is_follower(self._who.broker, record):
            return note._replace(set_id=record.set_id)
        return note if note.set_id else note._replace(set_id=self._fresh_token())

    async def _join(
        self, note: DirectoryNote, address: str, host: str, link: str
    ) -> tuple[DirectoryNote, bool]:
        """Try to join; false if something has changed at the arbiter meanwhile. Raises
        RegistrationRefused.
        """
        broker = self._who.broker
        found = self._session.scan(INCARNATIONS)
        stored = self._session.get(RECORD)
        living = registered_in(self._session.scan(BROKERS))
        known = Known(record_in(stored), lives_ever(found), living)
        record = joined(self._who, self._directory._replace(note=note), known)
        life = Incarnation(known.newest_of(broker).number + 1, self._fresh_token())
        note = note._replace(tokens=(*note.tokens, life.token))
        await self._store_note(note)
        registered = Registered(life.number, address, host, note.epoch, link)
        own = f"{INCARNATIONS}{broker}"
        expected = {
            RECORD: version_of(stored),
            own: version_of(found.get(own)),
            **{key: entry.version for key, entry in found.items()},
            **{f"{BROKERS}{each}": ABSENT for each in self._former_lives(note)},
        }
        changes = {
            RECORD: encode(record),
            own: json.dumps(life._asdict()).encode(),
            f"{BROKERS}{broker}": json.dumps(registered._asdict()).encode(),
        }
        try:
            await self._session.transact(expected, changes, [f"{BROKERS}{broker}"])
        except Conflict:
            return note, False
        joined_note = note.heard(record)._replace(
            is_member=True, broker=broker, last=life.number, tokens=(life.token,)
        )
        await self._store_note(joined_note)
        return joined_note, True


async def until_free(session: Session, brokers: set[int]) -> None:
    """Wait until none of these brokers is registered."""
    keys = {f"{BROKERS}{broker}" for broker in brokers}
    await session.until(lambda: all(session.get(key) is None for key in keys))


def version_of(found: Versioned | None) -> int:
    """The version that a write expects."""
    return found.version if found is not None else ABSENT


class UnreadableEntry(FaircopyError):
    """What the arbiter holds under a key of the set is not what this version can read."""


@contextlib.contextmanager
def readable(key: str) -> Iterator[None]:
    """Raise UnreadableEntry if what is read in the block can't be."""
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableEntry(
            f"the arbiter's {key} of the replica set can't be read ({error!r}): is this the version of "
            f"faircopy that wrote it?"
        ) from error


def record_in(found: Versioned | None) -> SetRecord | None:
    """The record, if there is one. Raises UnreadableEntry."""
    if found is None:
        return None
    with readable(RECORD):
        return decode(found.value)


def known_from(entries: Mapping[str, Versioned]) -> Known:
    """What an arbiter with these entries knows. Raises UnreadableEntry."""
    return Known(record_in(entries.get(RECORD)), lives_ever(with_prefix(entries, INCARNATIONS)))


def with_prefix(entries: Mapping[str, Versioned], prefix: str) -> dict[str, Versioned]:
    """The entries whose keys have this prefix."""
    return {key: value for key, value in entries.items() if key.startswith(prefix)}


def lives_ever(incarnations: Mapping[str, Versioned]) -> dict[int, Incarnation]:
    """The newest life of each broker that has ever lived, from a scan of INCARNATIONS. Raises
    UnreadableEntry.
    """
    found = {}
    for key, entry in incarnations.items():
        with readable(key):
            found[int(key.removeprefix(INCARNATIONS))] = Incarnation(**json.loads(entry.value))
    return found


def registered_in(brokers: Mapping[str, Versioned]) -> dict[int, Registered]:
    """All brokers that are registered, from a scan of BROKERS. Raises UnreadableEntry."""
    found = {}
    for key, entry in brokers.items():
        with readable(key):
            found[int(key.removeprefix(BROKERS))] = Registered(**json.loads(entry.value))
    return found


def lives_in(brokers: Mapping[str, Versioned]) -> dict[int, int]:
    """The incarnations of all brokers that are registered, from a scan of BROKERS."""
    return {broker: each.incarnation for broker, each in registered_in(brokers).items()}
