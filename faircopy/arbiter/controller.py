"""The controller: one broker at a time sees to it that the replica set has a leader.

    controller    broker id, in decimal; it goes with the lease

See docs/REPLICA_SETS.md, The record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from faircopy.arbiter.record import SetRecord, encode
from faircopy.arbiter.registration import (
    BROKERS,
    RECORD,
    Registered,
    UnreadableEntry,
    record_in,
    registered_in,
)
from faircopy.arbiter.session import Session
from faircopy.storage.versioned_map import ABSENT, Conflict

log = logging.getLogger(__name__)

CONTROLLER = "controller"


class Controller:
    """A broker that is controller, or waits to become it."""

    def __init__(self, session: Session, broker: int, now_ms: Callable[[], int] = lambda: 0) -> None:
        """`now_ms` is the wall clock, for people."""
        self._session = session
        self._broker = broker
        self._name = str(broker).encode()
        self._now_ms = now_ms
        self._said = ""

    async def run(self) -> None:
        """Be controller whenever nobody else is, until this is cancelled. Raises LeaseLost."""
        while True:
            seen = self._session.revision
            if not (await self._is_controller() and await self._elect()):
                await self._session.until_after(seen)

    async def _is_controller(self) -> bool:
        found = self._session.get(CONTROLLER)
        if found is not None:
            return found.value == self._name
        try:
            await self._session.transact({CONTROLLER: ABSENT}, {CONTROLLER: self._name}, [CONTROLLER])
        except Conflict:
            return False
        log.info("broker %d is the controller of its replica set", self._broker)
        return True

    async def _elect(self) -> bool:
        """Elect a leader if there is none. Returns whether something has changed meanwhile."""
        found, controller = self._session.get(RECORD), self._session.get(CONTROLLER)
        brokers = self._session.scan(BROKERS)
        try:
            record, registered = record_in(found), registered_in(brokers)
        except UnreadableEntry as error:
            self._say(f"nobody is elected: {error}")
            return False
        if found is None or record is None:
            return False
        elected = self._elected(record, registered)
        if elected is None:
            return False
        if controller is None or controller.value != self._name:
            return True
        name = f"{BROKERS}{elected.leader}"
        expected = {
            RECORD: found.version,
            name: brokers[name].version,
            CONTROLLER: controller.version,
        }
        try:
            await self._session.transact(expected, {RECORD: encode(elected)})
        except Conflict:
            return True
        log.info("broker %d is elected, in epoch %d", elected.leader, elected.epoch)
        return False

    def _elected(self, record: SetRecord, registered: dict[int, Registered]) -> SetRecord | None:
        """The record with another leader; None if somebody leads, or nobody may."""
        lives = {broker: each.incarnation for broker, each in registered.items()}
        if record.is_led(lives):
            return None
        newer = [broker for broker, each in registered.items() if each.known_epoch > record.epoch]
        if newer:
            self._say(
                f"nobody is elected: the arbiter's record has epoch {record.epoch}, and broker {newer[0]} "
                f"has heard of epoch {registered[newer[0]].known_epoch}. Was the arbiter restored from a "
                f"backup? `faircopy replicas rebuild-record` says what each directory has"
            )
            return None
        leader = record.next_leader(lives)
        if leader is not None:
            return record.elect(leader, self._now_ms())
        if len(record.replicas) == 1 and not record.in_sync and set(record.left) <= set(lives):
            # Nobody else could have lost less.
            (sole,) = record.replicas
            return record.recover(sole, lives[sole], self._now_ms())
        return None

    def _say(self, problem: str) -> None:
        """Log a problem once."""
        if problem != self._said:
            self._said = problem
            log.error("%s", problem)
