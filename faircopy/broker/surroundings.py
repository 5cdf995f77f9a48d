"""What a broker finds outside of itself: time, threads, the state store, chance, the publisher.

All of it is given to the broker in one piece, so that a simulation can put another world in its place.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from pathlib import Path

from faircopy.publish.client import Publisher, PublisherProcess
from faircopy.storage.boot import boot_id
from faircopy.storage.clock import Clock, SystemClock
from faircopy.storage.disk import Disk
from faircopy.storage.state_store import StateStore


class Surroundings:
    """The machine's own."""

    def __init__(self, clock: Clock | None = None, chance: random.Random | None = None) -> None:
        self.clock: Clock = clock or SystemClock()
        self.chance = chance or random.SystemRandom()

    def boot_id(self) -> str:
        """Which start of the machine this is; empty if that can't be known."""
        return boot_id()

    def new_salt(self) -> int:
        """64 bits that no client can guess."""
        return self.chance.getrandbits(64)

    def new_id(self) -> uuid.UUID:
        """An id that nothing else has."""
        return uuid.UUID(int=self.chance.getrandbits(128), version=4)

    def disk(self, loop: asyncio.AbstractEventLoop) -> Disk:
        """Threads for work that waits for the disk."""
        return Disk(loop)

    def store(self, path: Path, loop: asyncio.AbstractEventLoop) -> StateStore:
        return StateStore(path, loop)

    def publisher(self, idle_seconds: float) -> Publisher:
        return PublisherProcess(idle_seconds=idle_seconds)
