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

from faircopy.arbiter.session import Session
from faircopy.arbiter.shard_record import decode, encode
from faircopy.errors import FaircopyError
from faircopy.storage.versioned_map import ABSENT, Conflict, Versioned

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
    """A broker's newest life. `token` was made for it when it was asked for."""

    number: int
    token: str


class Lives(NamedTuple):
    """What a data directory knows of its broker's lives. `last`: its last one. `tokens`: that of the last
    one, and those with which it has asked for others since. `is_clean`: nothing that a life acknowledged can
    be lost.
    """

    last: int
    tokens: tuple[str, ...]
    is_clean: bool


Note = Callable[[Lives], Awaitable[None]]
"""Notes this in the data directory, durably. What is not clean stays so until it is noted to be. Whoever
finds that something may be lost notes that before recovery changes anything: the next start may not find it.
"""


class Registration:
    """The registration of one broker, by one session."""

    def __init__(
        self, session: Session, broker: int, lives: Lives, note: Note, fresh_token: Callable[[], str]
    ) -> None:
        self._session = session
        self._broker = broker
        self._lives = lives
        self._note = note
        self._fresh_token = fresh_token
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
        life, version = await self._begin_life(is_clean)
        # What this life writes depends on its being the newest, not on what the store has by now.
        newest = {self._incarnation_key: version}
        # Before it registers: from then on it may be elected.
        for key in list(self._session.scan(SHARDS)):
            await self._stay_in_or_leave(key, newest, life.number if is_clean else None)
        registered = Registered(life.number, client_address, link_address, rack)
        await self._session.transact(
            {self._broker_key: ABSENT, **newest},
            {self._broker_key: json.dumps(registered._asdict()).encode()},
            [self._broker_key],
        )
        await self._note(Lives(life.number, (life.token,), is_clean=True))
        return life.number

    def _is_clean(self, newest: Incarnation) -> bool:
        """Whether the directory is that of the broker's newest life, and has lost nothing (B10)."""
        last, tokens, is_clean = self._lives
        if newest.number < last:
            raise RegistrationRefused(
                f"broker {self._broker} has lived {last} times by its data directory, and {newest.number} "
                f"times by the cluster store: was that restored from a backup, or is it another cluster's?"
            )
        return is_clean and (newest.number == 0 or newest.token in tokens)

    async def _begin_life(self, is_clean: bool) -> tuple[Incarnation, int]:
        """Begin a life; it is in the store with the version that is returned. Raises Conflict."""
        key = self._incarnation_key
        found = self._session.get(key)
        life = Incarnation(newest_in(found).number + 1, self._fresh_token())
        # First: if this start is cut short, the next one knows the life that it finds in the store.
        self._lives = Lives(self._lives.last, (*self._lives.tokens, life.token), is_clean)
        await self._note(self._lives)
        version = found.version if found is not None else ABSENT
        value = json.dumps(life._asdict()).encode()
        return life, await self._session.transact({key: version}, {key: value})

    async def _stay_in_or_leave(self, key: str, newest: dict[str, int], incarnation: int | None) -> None:
        """Say in a shard's record that this life has begun, or, without an incarnation, that something may be
        lost. Raises Conflict if this life is not the newest.
        """
        while (found := self._session.get(key)) is not None:
            record = decode(found.value)
            if self._broker not in record.in_sync:
                return
            changed = (
                record.stay_in(self._broker, incarnation)
                if incarnation is not None
                else record.take_out(self._broker)
            )
            try:
                await self._session.transact({key: found.version, **newest}, {key: encode(changed)})
            except Conflict:
                life = self._session.get(self._incarnation_key)
                if life is None or newest != {self._incarnation_key: life.version}:
                    raise
            else:
                return


def newest_in(found: Versioned | None) -> Incarnation:
    """A broker's newest life, as the store has it; number 0 if there was none."""
    return Incarnation(**json.loads(found.value)) if found is not None else Incarnation(0, "")


def lives_in(brokers: dict[str, Versioned]) -> dict[int, int]:
    """The incarnations of all brokers that are registered, from a scan of BROKERS."""
    return {
        int(key.removeprefix(BROKERS)): int(json.loads(value.value)["incarnation"])
        for key, value in brokers.items()
    }
