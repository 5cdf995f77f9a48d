"""The environment of a broker: time, threads, the state store, chance, the publisher.

The broker is given all of it in one piece, so that a simulation can put another world in its place.
"""

from __future__ import annotations

import asyncio
import os
import random
import uuid
from collections.abc import Callable
from pathlib import Path

from faircopy.arbiter.address import ArbiterOptions
from faircopy.arbiter.backend import Backend
from faircopy.arbiter.backends import open_backend
from faircopy.publish.arrow import has_arrow
from faircopy.publish.client import Publisher, PublisherProcess
from faircopy.storage.boot import boot_id
from faircopy.storage.clock import MachineClock, SystemClock
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.state_store import StateStore
from faircopy.wire.address import Address


class Environment:
    """The environment that the machine provides."""

    def __init__(
        self,
        clock: MachineClock | None = None,
        chance: random.Random | None = None,
        descriptors_max: int | None = None,
    ) -> None:
        """`descriptors_max` is how many descriptors the process may have open; None sets no limit."""
        self.clock: MachineClock = clock or SystemClock()
        self.chance = chance or random.SystemRandom()
        self.descriptors_max = descriptors_max

    def boot_id(self) -> str:
        """Which start of the machine this is; empty if that can't be known."""
        return boot_id()

    def process_id(self) -> int:
        """The id of the broker's process, which people find in files."""
        return os.getpid()

    def end_process(self, exit_code: int) -> None:
        """End the process at once, as in a crash."""
        os._exit(exit_code)

    def new_salt(self) -> int:
        """64 bits that no client can guess."""
        return self.chance.getrandbits(64)

    def new_id(self) -> uuid.UUID:
        """An id that nothing else has."""
        return uuid.UUID(int=self.chance.getrandbits(128), version=4)

    def disk(self, loop: asyncio.AbstractEventLoop) -> DiskPool:
        """Threads for work that waits for the disk."""
        return DiskPool(loop)

    def store(self, path: Path, loop: asyncio.AbstractEventLoop) -> StateStore:
        """The state store in the LMDB file at `path`. Raises StorageFailure."""
        return StateStore(path, loop)

    def new_nonce(self) -> bytes:
        """32 bytes that nobody can guess, and that never come again."""
        return self.chance.randbytes(32)

    async def connect(self, address: Address, protocol: asyncio.Protocol) -> asyncio.BaseTransport:
        """Connect a protocol to another broker. Raises OSError."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(lambda: protocol, address.host, address.port)
        return transport

    async def listen(
        self, address: Address, accept: Callable[[], asyncio.Protocol]
    ) -> tuple[Address, Callable[[], None]]:
        """Let other brokers connect. Returns the address, with the port that was taken, and what ends it.
        Raises OSError.
        """
        server = await asyncio.get_running_loop().create_server(accept, address.host, address.port)
        return address._replace(port=server.sockets[0].getsockname()[1]), server.close

    def arbiter(
        self, options: ArbiterOptions, set_name: str, name: str, loop: asyncio.AbstractEventLoop
    ) -> Backend:
        """The arbiter of a replica set, for a process with a name that no other has. Raises FaircopyError."""
        return open_backend(options, set_name, name, loop)

    def publisher(self, now_ms: Callable[[], int], idle_seconds: float) -> Publisher | None:
        """A publisher in a process of its own, which ends once it has been idle for `idle_seconds`. None if
        what it writes with is not installed.
        """
        if not has_arrow():
            return None
        return PublisherProcess(now_ms, idle_seconds=idle_seconds)
