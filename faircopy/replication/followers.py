"""The followers of a leader: a link to each, kept up for as long as it leads.

Who is missing is known here, since when, and why. A link that ends is begun again, with the life of the
follower that is registered by then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from faircopy.errors import FaircopyError
from faircopy.journal.journal import Journal
from faircopy.loop.waiting import cancel
from faircopy.replication.errors import LinkLost, Refused
from faircopy.replication.feeder import Feeder
from faircopy.replication.handshake import Own, call_follower
from faircopy.replication.led import Led
from faircopy.replication.life import Life
from faircopy.replication.link import Dial, Link, open_link
from faircopy.replication.messages import MarkedJournal, Marks
from faircopy.replication.timing import Timing
from faircopy.storage.disk_pool import DiskPool

Result = TypeVar("Result")

log = logging.getLogger(__name__)


class Reachable(NamedTuple):
    """A follower in the life in which it can be reached, and how."""

    life: Life
    dial: Dial


Reach = Callable[[int], Awaitable[Reachable]]
"""Waits until a broker is registered."""


class Missing(NamedTuple):
    """A follower that is away, or has not been compared with yet. `since`: by the loop's clock."""

    since: float
    why: str


class Followers:
    """Belongs to the event loop. `steady_ms`: the set's steady clock. `first`: see `Feeder`."""

    def __init__(
        self,
        own: Own,
        led: Led,
        brokers: Sequence[int],
        reach: Reach,
        disk: DiskPool,
        steady_ms: Callable[[], int],
        timing: Timing,
        loop: asyncio.AbstractEventLoop,
        first: bytes | None = None,
    ) -> None:
        self._own = own
        self._led = led
        self._reach = reach
        self._disk = disk
        self._steady_ms = steady_ms
        self._timing = timing
        self._loop = loop
        self._first = first
        self._feeders: dict[int, Feeder] = {}
        self.missing = {broker: Missing(loop.time(), "it was not reached yet") for broker in brokers}
        self._has_compared = asyncio.Event()
        self._brokers = tuple(brokers)
        self._keepers = [loop.create_task(self._keep(broker)) for broker in brokers]

    async def close(self) -> None:
        """End all links."""
        await cancel(self._keepers)

    # -- journals --------------------------------------------------------------------------------------------

    def lead(self, journal: Journal) -> None:
        """Ship a journal, too: one that is open, raw or not."""
        if self._led.find(journal.identity) is not journal:
            self._led.open(journal)
            self.note_moved(journal.identity)

    def forget(self, identity: bytes) -> None:
        """A journal is deleted."""
        self._led.close(identity)
        self.note_moved(identity)

    def note_moved(self, identity: bytes) -> None:
        """A journal's written or synced position has moved."""
        for feeder in self._feeders.values():
            feeder.note_moved(identity)

    async def barrier(self, journals: Sequence[Journal]) -> None:
        """Wait until all followers were compared in these journals, and have all that is there now: whoever
        leads next has exactly this (A17).
        """
        identities = [journal.identity for journal in journals]
        while not all(feeder is not None and feeder.has_compared(identities) for feeder in self._all()):
            self._has_compared.clear()
            await self._has_compared.wait()
        await asyncio.gather(*(journal.durable() for journal in journals))

    def _all(self) -> Iterator[Feeder | None]:
        """The feeder of each follower, if it has a link."""
        return map(self._feeders.get, self._brokers)

    @property
    def are_short(self) -> bool:
        """Whether a follower's disk is nearly full."""
        return any(feeder.is_short for feeder in self._feeders.values())

    # -- links -----------------------------------------------------------------------------------------------

    async def _keep(self, broker: int) -> None:
        """Keep a link to one follower."""
        while True:
            try:
                await self._link(broker)
            except (FaircopyError, OSError) as error:
                self._miss(broker, str(error) or type(error).__name__)
            except Exception as error:
                log.exception("the link to broker %d has ended by a bug", broker)
                self._miss(broker, repr(error))
            await asyncio.sleep(self._timing.retry_seconds)

    async def _link(self, broker: int) -> None:
        """One link, from beginning to end. Raises why it has ended."""
        follower, dial = await self._reach(broker)
        link = await self._soon(open_link(dial))
        try:
            await self._soon(call_follower(link, self._own, self._led.epoch, follower))
            await self._feed(link, follower)
        except Refused as error:
            link.refuse(error)
            raise
        except BaseException:
            link.abort()
            raise

    async def _soon(self, work: Awaitable[Result]) -> Result:
        """What comes of the beginning of a link. Raises LinkLost if that takes too long."""
        seconds = self._timing.handshake_seconds
        try:
            return await asyncio.wait_for(work, seconds)
        except TimeoutError:
            raise LinkLost(f"it has not answered for {seconds:g} s") from None

    async def _feed(self, link: Link, follower: Life) -> None:
        self._led.join(follower)
        feeder = Feeder(
            link, follower, self._led, self._disk, self._timing, self._marks, self._heard, self._first
        )
        self._feeders[follower.broker] = feeder
        try:
            await feeder.run()
        finally:
            del self._feeders[follower.broker]

    def _heard(self, identities: Iterable[bytes]) -> None:
        """A follower has said something of these journals: others may be told that they are durable."""
        for identity in identities:
            for feeder in self._feeders.values():
                feeder.note_acked(identity)
        self._has_compared.set()
        if self.missing:
            self._welcome()

    def _welcome(self) -> None:
        back = [
            each for each in self.missing if each in self._feeders and self._feeders[each].has_compared_all
        ]
        for broker in back:
            del self.missing[broker]
            log.info("%s follows, in epoch %d", self._feeders[broker].follower, self._led.epoch)

    def _miss(self, broker: int, why: str) -> None:
        known = self.missing.get(broker)
        if known is None or known.why != why:
            log.warning("broker %d does not follow: %s. Nothing new is accepted until it does", broker, why)
        self.missing[broker] = Missing(known.since if known is not None else self._loop.time(), why)

    def _marks(self, journals: tuple[MarkedJournal, ...]) -> Marks:
        lives = {self._own.life.broker: self._own.life.incarnation}
        return Marks(self._steady_ms(), self._led.epoch, lives, journals)
