"""A broker in this process, on a virtual clock and a disk in memory, that lives on from input to input.

Each input comes on a connection of its own. After it, another client must be served, and neither the broker
nor its event loop may have reported an error. After some inputs the broker is killed and started again on
what it has written, which must be sound; then a new one starts from nothing. So all that is wrong comes from
the inputs since then, and `inputs_to_repeat` has them as one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

from faircopy.api.routes import schema_of
from faircopy.broker.broker import Broker
from faircopy.broker.environment import Environment
from faircopy.errors import FaircopyError
from faircopy.hosting import administration
from faircopy.publish.client import Publisher, PublishError
from faircopy.publish.layout import NO_COLUMNS, Layout
from faircopy.publish.offsets import Held
from faircopy.publish.requests import Publish, Published, Tidied, Tidy
from faircopy.settings.table import Settings
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.state_store import StateStore
from faircopy.storage.system import mount
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.messages import encode_request
from tests.fuzz.memory import MemoryDisk
from tests.fuzz.pipe import Pipe
from tests.simulation.disk_nodes import DirectoryNode
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.lying_disk import LyingDisk
from tests.simulation.store import Contents, SimulatedStore
from tests.simulation.threads import SimulatedThreads

DIRECTORY = Path("/data")
TOPIC = "orders"
INPUTS_OF_A_BROKER = 300
PARTITIONS_MAX = 100  # that administrators may ask for thousands is no matter of odd inputs
DISK_THREADS = 4
PROCESS_ID = 1
STEP_SECONDS = 0.01
QUIET_SECONDS = 1.0
PATIENCE_SECONDS = 20.0  # more than any wait of the broker that no client has asked for
EPOCH_MS = 1_790_000_000_000

SETTINGS = Settings(
    data_dir=str(DIRECTORY),
    metadata_journals=2,
    offsets_partitions=2,
    journal_segment_bytes=20_000,
    checkpoint_bytes=10_000,
    checkpoint_interval_ms=2_000,
    topic_segment_bytes=20_000,
    producer_id_block=100,
    group_initial_rebalance_delay_ms=0,
    fetch_max_bytes=100_000,  # larger answers are sent from files, for which a socket is needed
    request_max_bytes=1 << 20,
    plain_enabled=False,
)

Result = TypeVar("Result")


class Fault(Exception):
    """The product did what it must not."""


class VirtualClock:
    """The clocks of the broker's machine."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def wall_ms(self) -> int:
        return EPOCH_MS + int(self._loop.now * 1000)

    def uptime_ms(self) -> int:
        return int(self._loop.now * 1000)

    def monotonic_ms(self) -> float:
        return self._loop.now * 1000


class NoPublisher(Publisher):
    """There is no publisher of plain tables: it has targets of its own."""

    async def open_table(self, table: str, directory: str, layout: Layout = NO_COLUMNS) -> Held:
        raise PublishError("nothing is published here", retry=False)

    async def publish(self, publication: Publish) -> Published:
        raise PublishError("nothing is published here", retry=False)

    async def tidy(self, request: Tidy) -> Tidied:
        raise PublishError("nothing is published here", retry=False)

    async def drop_table(self, table: str, directory: str) -> None:
        pass

    async def stop(self) -> None:
        pass

    async def kill(self) -> None:
        pass


class FuzzEnvironment(Environment):
    """What the broker finds outside of itself: always the same."""

    def __init__(self, loop: VirtualLoop, contents: Contents) -> None:
        super().__init__(VirtualClock(loop), random.Random(0))
        self._contents = contents
        self._delays = random.Random(0)

    def boot_id(self) -> str:
        return "boot"

    def process_id(self) -> int:
        return PROCESS_ID

    def disk(self, loop: asyncio.AbstractEventLoop) -> DiskPool:
        return SimulatedThreads(loop, DISK_THREADS, self._delays)

    def store(self, path: Path, loop: asyncio.AbstractEventLoop) -> StateStore:
        return SimulatedStore(self._contents, loop, self._delays, lambda: None)

    def publisher(self, now_ms: Callable[[], int], idle_seconds: float) -> Publisher:
        return NoPublisher()


class Complaints(logging.Handler):
    """What the broker logs of its own bugs: errors with a trace, and partitions that are stopped."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None or "is stopped" in record.getMessage():
            self.found.append(self.format(record))


class World:
    """`feed` gives an input to the broker. A new world is the same each time."""

    def __init__(self) -> None:
        self._inputs: list[bytes] = []
        self._begin()

    def close(self) -> None:
        """End the broker, as a kill does."""
        self._life.end()
        self.loop.close()

    def _begin(self) -> None:
        self.loop = VirtualLoop()
        self._disk: LyingDisk = MemoryDisk()
        self._disk.root.names["data"] = DirectoryNode()
        self._contents = Contents()
        self._complaints = Complaints()
        self._inputs.clear()
        self.run(self._start())
        self.run(self._make_topic())

    @property
    def inputs_to_repeat(self) -> list[bytes]:
        """All inputs since the broker started from nothing."""
        return list(self._inputs)

    # -- running ---------------------------------------------------------------------------------------------

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run the loop until this is done, with the world's disk and with an ear for complaints."""
        with mount(self._disk), self._listening(), patched():
            return self.loop.run(work)

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        logger = logging.getLogger("faircopy")
        before, logger.propagate = logger.propagate, False
        logger.addHandler(self._complaints)
        try:
            yield
        finally:
            logger.removeHandler(self._complaints)
            logger.propagate = before

    async def _start(self) -> None:
        self._life = Life("broker")
        await self.loop.create_task(self._open(), context=self._life.context)

    async def _open(self) -> None:
        self.broker = Broker(SETTINGS, FuzzEnvironment(self.loop, self._contents))
        await self.broker.open()
        self.broker.start_background()

    async def _make_topic(self) -> None:
        topics = [{"name": TOPIC}]
        await self.ask(ApiKey.METADATA, 9, {"topics": topics, "allow_auto_topic_creation": True})

    # -- clients ---------------------------------------------------------------------------------------------

    def connect(self) -> Pipe:
        """A connection of a new client."""
        return Pipe(self.loop, self._life, self.broker.server)

    async def ask(self, api_key: ApiKey, version: int, body: dict[str, Any]) -> None:
        """Make a request on a connection of its own. Raises Fault if it is not answered."""
        pipe = self.connect()
        pipe.send(encode_request(schema_of(api_key), version, 1, "sane", body))
        await quiet(pipe, PATIENCE_SECONDS)
        if 1 not in pipe.responses:
            raise Fault(f"a request for {api_key.name} was not answered")
        pipe.hang_up()

    def feed(self, data: bytes, session: Coroutine[Any, Any, None]) -> None:
        """Have a client do what `data` makes it do, then look whether all is well. Raises Fault."""
        self._inputs.append(data)
        try:
            self.run(self._feed(session))
            if len(self._inputs) >= INPUTS_OF_A_BROKER:
                self.restart()
        except BaseException as error:
            error.add_note(f"the broker had {len(self._inputs)} inputs, this one included")
            raise
        if len(self._inputs) >= INPUTS_OF_A_BROKER:
            self.close()
            self._begin()

    async def _feed(self, session: Coroutine[Any, Any, None]) -> None:
        await session
        await self.ask(
            ApiKey.API_VERSIONS, 3, {"client_software_name": "sane", "client_software_version": "1"}
        )
        self._ensure_well()

    def _ensure_well(self) -> None:
        if self._complaints.found:
            raise Fault("\n".join(self._complaints.found))
        if self.loop.failures:
            raise Fault(str(self.loop.failures)) from self.loop.failures[0].get("exception")
        if self.broker.failed.done():
            raise Fault(f"the broker has ended itself: {self.broker.failed.result()}")

    def restart(self) -> None:
        """Kill the broker, and start it again. Raises Fault if what it finds is not sound."""
        self._life.end()
        self._disk = self._disk.kill()
        try:
            self.run(self._start())
        except FaircopyError as error:
            raise Fault(f"after a kill the broker does not start: {error}") from error
        self._ensure_well()


@contextlib.contextmanager
def patched() -> Iterator[None]:
    """What the broker asks of this machine past its environment, and how much it may be asked for."""
    here = os.statvfs("/")
    with (
        patch.object(administration, "PARTITIONS_MAX", PARTITIONS_MAX),
        patch.object(os, "statvfs", lambda _path: here),
    ):
        yield


async def quiet(pipe: Pipe, seconds: float = QUIET_SECONDS) -> None:
    """Wait until all whole requests on a connection are answered or given up, or `seconds` are over."""
    for _ in range(int(seconds / STEP_SECONDS)):
        await asyncio.sleep(STEP_SECONDS)
        if not pipe.is_open or pipe.is_idle:
            return
