"""A topic with a short retention: whatever clocks do, nothing expires early, and in the end all expires."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from tests.simulation.consumer import EARLIEST, LATEST, SimulatedConsumer
from tests.simulation.network import Remote
from tests.simulation.producer import GaveUp, Refused, SimulatedProducer

TOPIC = "aged"
PARTITION = "aged-0"
RETENTION_SECONDS = 15.0
SETTINGS = {
    "retention.ms": str(int(RETENTION_SECONDS * 1000)),
    "segment.ms": "4000",
}
PAUSE_SECONDS = 0.5
ASK_CHANCE = 0.2
PATIENCE_SECONDS = 200.0  # checkpoints may be a minute apart, and the second one deletes a segment


class Aging:
    """Sends messages, and watches the log's start. Messages may seem older than they are by `early_seconds`.

    Raises AssertionError.
    """

    def __init__(
        self,
        remote: Remote,
        chosen: random.Random,
        now: Callable[[], float],
        early_seconds: Callable[[], float],
    ) -> None:
        self._remote = remote
        self._chosen = chosen
        self._now = now
        self._early_seconds = early_seconds
        self._sent: dict[int, float] = {}
        self._value = 0

    async def run(self, is_over: Callable[[], bool], wall_ms: Callable[[], int]) -> None:
        """Send one message after another, and look at the log's start now and then."""
        while not is_over():
            producer = SimulatedProducer(self._remote, None, self._chosen)
            try:
                await producer.begin_life()
                while not is_over():
                    await asyncio.sleep(self._chosen.random() * PAUSE_SECONDS)
                    await self._send(producer, wall_ms())
                    if self._chosen.random() < ASK_CHANCE:
                        await self._look()
            except (Refused, GaveUp):
                continue

    async def _send(self, producer: SimulatedProducer, time_ms: int) -> None:
        self._value += 1
        began = self._now()
        offset = await producer.send(PARTITION, [self._value], time_ms)
        self._sent[offset] = began

    async def _look(self) -> int:
        start = await self._bound(EARLIEST)
        youngest = max((sent for offset, sent in self._sent.items() if offset < start), default=None)
        if youngest is not None:
            age = self._now() - youngest
            least = RETENTION_SECONDS - self._early_seconds()
            assert age >= least, f"a message expired after {age:.1f} s, not after {RETENTION_SECONDS} s"
        return start

    async def _bound(self, which: int) -> int:
        return await SimulatedConsumer(self._remote, [PARTITION], is_committed=True).bound(PARTITION, which)

    async def ensure_all_goes(self) -> None:
        """Wait until the topic is empty, including its last segment. Nobody sends any more."""
        until = self._now() + PATIENCE_SECONDS
        while await self._look() < await self._bound(LATEST):
            assert self._now() < until, "the topic keeps what has expired"
            await asyncio.sleep(1)
