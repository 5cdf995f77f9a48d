"""The controller: one broker at a time sees to it that every shard has a leader.

    controller    broker id, in decimal; it goes with the lease

See docs/CLUSTER.md, The record of a shard.
"""

from __future__ import annotations

import asyncio
import logging

from faircopy.arbiter.registration import BROKERS, SHARDS, lives_in
from faircopy.arbiter.session import Session
from faircopy.arbiter.shard_record import decode, encode
from faircopy.storage.versioned_map import ABSENT, Conflict, Versioned

log = logging.getLogger(__name__)

CONTROLLER = "controller"


class Controller:
    """A broker that is controller, or waits to become it."""

    def __init__(self, session: Session, broker: int) -> None:
        self._session = session
        self._name = str(broker).encode()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Be controller whenever nobody else is, until this is cancelled. Raises LeaseLost."""
        watches = [self._session.watch(prefix, self._note) for prefix in (BROKERS, SHARDS, CONTROLLER)]
        try:
            while True:
                self._changed.clear()
                if await self._is_controller() and await self._elect():
                    continue
                await self._changed.wait()
        finally:
            for stop in watches:
                stop()

    def _note(self, _key: str, _value: Versioned | None) -> None:
        self._changed.set()

    async def _is_controller(self) -> bool:
        found = self._session.get(CONTROLLER)
        if found is not None:
            return found.value == self._name
        try:
            await self._session.transact({CONTROLLER: ABSENT}, {CONTROLLER: self._name}, [CONTROLLER])
        except Conflict:
            return False
        log.info("this broker is the controller now")
        return True

    async def _elect(self) -> bool:
        """Elect leaders where there is none. Returns whether something has changed meanwhile."""
        brokers = self._session.scan(BROKERS)
        lives = lives_in(brokers)
        for key, found in self._session.scan(SHARDS).items():
            try:
                record = decode(found.value)
            except (ValueError, KeyError, TypeError) as error:
                log.error("the record %s can't be read, so nobody is elected: %r", key, error)
                continue
            leader = record.next_leader(lives)
            if leader is None:
                continue
            controller = self._session.get(CONTROLLER)
            if controller is None or controller.value != self._name:
                return True
            try:
                await self._session.transact(
                    {
                        key: found.version,
                        f"{BROKERS}{leader}": brokers[f"{BROKERS}{leader}"].version,
                        CONTROLLER: controller.version,
                    },
                    {key: encode(record.elect(leader))},
                )
            except Conflict:
                return True
        return False
