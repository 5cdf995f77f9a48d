"""A broker joins its cluster, in a life that nobody else has.

    incarnations/<id>    JSON of `Incarnation`: the broker's newest life; it stays when that is over
    brokers/<id>         JSON of `Registered`; it goes with the lease

See docs/CLUSTER.md, A broker's life.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from faircopy.cluster.session import Session
from faircopy.cluster.shard_record import ShardRecord, decode, encode
from faircopy.cluster.store import ABSENT, Conflict, Versioned
from faircopy.errors import FaircopyError

BROKERS = "brokers/"
INCARNATIONS = "incarnations/"
SHARDS = "shards/"
OTHER_LIFE_SECONDS = 60.0
"""How long a start waits for the lease of an earlier life: longer than any lease."""


class RegistrationRefused(FaircopyError):
    """A broker can't join the cluster with this id and this directory."""


class Registered(NamedTuple):
    """A broker that lives: where clients and other brokers find it."""

    incarnation: int
    client_address: str
    link_address: str
    rack: str


class Incarnation(NamedTuple):
    """A broker's newest life, and the identity of the data directory that it lives in."""

    number: int
    directory: str


class Lives(NamedTuple):
    """What a data directory knows of its broker's lives. `last`: its last one. `asked`: the highest that it
    was about to ask for; the store has given it or not. `is_clean`: nothing that a life acknowledged can be
    lost.
    """

    directory: str
    last: int
    asked: int
    is_clean: bool


Note = Callable[[Lives], Awaitable[None]]
"""Notes this in the data directory, durably. What is not clean stays so until it is noted to be."""


class Registration:
    """The registration of one broker, by one session."""

    def __init__(self, session: Session, broker: int, lives: Lives, note: Note) -> None:
        self._session = session
        self._broker = broker
        self._lives = lives
        self._note = note
        self._incarnation_key = f"{INCARNATIONS}{broker}"
        self._broker_key = f"{BROKERS}{broker}"

    async def register(self, client_address: str, link_address: str, rack: str) -> int:
        """Join the cluster, and return the incarnation. Waits until an earlier life is over at the store.
        When this returns, the copy of the store is not older than the registration (B18). Raises
        RegistrationRefused, LeaseLost.
        """
        await self._session.fence()
        while True:
            await self._until_alone()
            try:
                return await self._join(client_address, link_address, rack)
            except Conflict:  # another life has begun meanwhile; it may be a late write of one that is over
                continue

    async def _until_alone(self) -> None:
        """Wait until no life of this broker is registered. Raises RegistrationRefused if that takes long."""
        changed = asyncio.Event()
        stop = self._session.watch(self._broker_key, lambda _key, _value: changed.set())
        try:
            async with asyncio.timeout(OTHER_LIFE_SECONDS):
                while self._session.get(self._broker_key) is not None:
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            raise RegistrationRefused(
                f"another process is broker {self._broker} of this cluster: end it, or give this one another "
                f"id"
            ) from None
        finally:
            stop()

    async def _join(self, client_address: str, link_address: str, rack: str) -> int:
        """Raises Conflict if another life of the broker begins meanwhile."""
        is_clean = self._is_clean(newest_in(self._session.get(self._incarnation_key)))
        incarnation = await self._begin_life(is_clean)
        # Before it registers: from then on it may be elected.
        for key in list(self._session.scan(SHARDS)):
            await self._stay_in_or_leave(key, incarnation, is_clean)
        registered = Registered(incarnation, client_address, link_address, rack)
        await self._session.transact(
            {self._broker_key: ABSENT, **self._as_it_is(self._incarnation_key)},
            {self._broker_key: json.dumps(registered._asdict()).encode()},
            [self._broker_key],
        )
        await self._note(self._lives._replace(last=incarnation, asked=incarnation, is_clean=True))
        return incarnation

    def _is_clean(self, newest: Incarnation) -> bool:
        """Whether the directory is that of the broker's newest life, and has lost nothing (B10)."""
        directory, last, asked, is_clean = self._lives
        if newest.number < last:
            raise RegistrationRefused(
                f"broker {self._broker} has lived {last} times by its data directory, and {newest.number} "
                f"times by the cluster store: was that restored from a backup, or is it another cluster's?"
            )
        is_newest = newest.number == 0 or newest.directory == directory
        return is_clean and is_newest and newest.number <= asked

    async def _begin_life(self, is_clean: bool) -> int:
        key = self._incarnation_key
        number = newest_in(self._session.get(key)).number + 1
        # First: if this start is cut short, the next one knows the number that it finds in the store.
        self._lives = self._lives._replace(asked=number, is_clean=is_clean)
        await self._note(self._lives)
        life = json.dumps(Incarnation(number, self._lives.directory)._asdict()).encode()
        await self._session.transact(self._as_it_is(key), {key: life})
        return number

    async def _stay_in_or_leave(self, key: str, incarnation: int, is_clean: bool) -> None:
        """Say in a shard's record that another life has begun, or that something may be lost."""
        while (found := self._session.get(key)) is not None:
            record = decode(found.value)
            if self._broker not in record.in_sync:
                return
            changed = self._next(record, incarnation, is_clean)
            try:
                await self._session.transact(
                    {key: found.version, **self._as_it_is(self._incarnation_key)}, {key: encode(changed)}
                )
            except Conflict:
                if newest_in(self._session.get(self._incarnation_key)).number != incarnation:
                    raise
            else:
                return

    def _next(self, record: ShardRecord, incarnation: int, is_clean: bool) -> ShardRecord:
        if not is_clean:
            return record.take_out(self._broker)
        return record.stay_in(self._broker, record.in_sync[self._broker], incarnation)

    def _as_it_is(self, key: str) -> dict[str, int]:
        found = self._session.get(key)
        return {key: found.version if found is not None else ABSENT}


def newest_in(found: Versioned | None) -> Incarnation:
    """A broker's newest life, as the store has it; number 0 if there was none."""
    return Incarnation(**json.loads(found.value)) if found is not None else Incarnation(0, "")


def lives_in(brokers: dict[str, Versioned]) -> dict[int, int]:
    """The incarnations of all brokers that are registered, from a scan of BROKERS."""
    return {
        int(key.removeprefix(BROKERS)): int(json.loads(value.value)["incarnation"])
        for key, value in brokers.items()
    }
