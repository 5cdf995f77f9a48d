"""A run: each system in turn is written to through a proxy that delivers some requests late."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.late.results import Row
from bench.late.systems import SYSTEMS
from bench.late.verdict import Attempt, judge
from bench.late.weather import LateWeather
from bench.late.writers import PARTITIONS, Writer
from bench.load.clients import committed_consumer, make_topic, places
from bench.systems.ports import HOST
from tests.soak.proxy import LATE_SECONDS_MAX, Proxy

TOPIC = "late"
WRITERS = 8
POLL_SECONDS = 0.2
READ_SECONDS_MAX = 120.0


def measure(name: str, directory: Path, seconds: float, seed: int, tell: Callable[[float, int], None]) -> Row:
    """Write to a system for so long, and judge what is in its log. `tell` is told of the seconds that have
    passed, and how many transactions there were.
    """
    weather = LateWeather(seed)
    with proxy_of(weather) as proxy:
        broker = SYSTEMS[name](directory, proxy.port)
        broker.start()
        try:
            proxy.target = broker.port
            address = f"{HOST}:{proxy.port}"
            make_topic(address, TOPIC, PARTITIONS)
            attempts = write(address, weather, seconds, seed, tell)
            return Row(broker.about, seconds, dict(weather.late), judge(attempts, read(address)))
        finally:
            broker.stop()


def write(
    address: str, weather: LateWeather, seconds: float, seed: int, tell: Callable[[float, int], None]
) -> list[Attempt]:
    """Have all writers write in bad weather, and then wait until nothing is under way any more."""
    writers = [Writer(address, TOPIC, number, seed) for number in range(WRITERS)]
    weather.is_calm = False
    for writer in writers:
        writer.start()
    began = time.monotonic()
    while time.monotonic() < began + seconds and all(writer.is_alive() for writer in writers):
        time.sleep(POLL_SECONDS)
        tell(time.monotonic() - began, sum(len(writer.attempts) for writer in writers))
    weather.is_calm = True
    time.sleep(LATE_SECONDS_MAX)
    for writer in writers:
        writer.end()
    for writer in writers:
        writer.join()
        if writer.failure is not None:
            raise RuntimeError(f"{writer.name} has failed: {writer.failure}") from writer.failure
    return [attempt for writer in writers for attempt in writer.attempts]


def read(address: str) -> list[str]:
    """All that a reader of committed data finds in the topic. Raises TimeoutError."""
    consumer = committed_consumer(address)
    found: list[str] = []
    starts = places(TOPIC, PARTITIONS, 0)
    ends = {place.partition: consumer.get_watermark_offsets(place, timeout=30)[1] for place in starts}
    consumer.assign(starts)
    deadline = time.monotonic() + READ_SECONDS_MAX
    while any(place.offset < ends[place.partition] for place in consumer.position(starts)) or not found:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the log can't be read up to its end within {READ_SECONDS_MAX:.0f} s")
        for message in consumer.consume(1000, POLL_SECONDS):
            value = message.value()
            assert message.error() is None and value is not None
            found.append(value.decode())
    consumer.close()
    return found


@contextlib.contextmanager
def proxy_of(weather: LateWeather) -> Iterator[Proxy]:
    """A proxy on an event loop in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="proxy")
    thread.start()
    proxy = Proxy(weather, older=0)
    try:
        asyncio.run_coroutine_threadsafe(proxy.__aenter__(), loop).result()
        yield proxy
    finally:
        asyncio.run_coroutine_threadsafe(proxy.__aexit__(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
