"""The publisher as a process, through the broker's side of it: death, idleness, order, exactly once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import psutil
import pytest

from faircopy.publish.client import PublisherProcess, PublishError
from faircopy.publish.files import Files
from faircopy.publish.offsets import Held
from faircopy.publish.requests import Chunk, Cut, Publish
from faircopy.wire.records import NewRecord, build_batch
from tests.seeds import seed_for
from tests.unit.publish.published_log import GrowingLog
from tests.unit.publish.table_reader import read_offsets

ORDERS = ("orders", 0)
GOOD = [NewRecord(b"value", timestamp_ms=1000)] * 10


def now_ms() -> int:
    return 1_790_000_000_000


class Place:
    def __init__(self, root: Path) -> None:
        self.directory = root / "plain" / "orders"
        self.log = GrowingLog(Files(), root, [ORDERS])

    def next(self) -> Publish:
        self.log.append(ORDERS, GOOD, "7.0.1")
        return Publish("orders", str(self.directory), self.log.cut())

    def offsets(self) -> list[int]:
        return read_offsets(Files(), self.directory).get(ORDERS, [])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


def test_open_publish_drop_stop(place: Place) -> None:
    async def main() -> None:
        publisher = PublisherProcess(now_ms)
        assert publisher.pid is None
        assert (await publisher.open_table("orders", str(place.directory))).next_offsets == {}
        pid = publisher.pid
        assert pid is not None and psutil.Process(pid).nice() == psutil.Process().nice() + 5
        published = await publisher.publish(place.next())
        assert (published.sequence, published.rows) == (33, 10)
        assert (await publisher.open_table("orders", str(place.directory))).next_offsets == {
            "orders": {0: 10}
        }
        assert place.offsets() == list(range(10))
        await publisher.drop_table("orders", str(place.directory))
        assert not place.directory.exists()
        await publisher.stop()
        assert not psutil.pid_exists(pid)
        await publisher.stop()

    run(main())


def test_requests_made_at_once_are_done_in_order(place: Place) -> None:
    async def main() -> None:
        publisher = PublisherProcess(now_ms)
        requests = [place.next() for _ in range(20)]
        replies = await asyncio.gather(*(publisher.publish(request) for request in requests))
        assert [reply.sequence for reply in replies] == list(range(33, 53))
        await publisher.stop()

    run(main())
    assert place.offsets() == list(range(200))


def test_a_failure_is_raised(place: Place) -> None:
    async def main() -> None:
        publisher = PublisherProcess(now_ms)
        request = place.next()
        place.log.path(ORDERS).write_bytes(bytes(5000))
        with pytest.raises(PublishError, match=r"orders-0\.log") as raised:
            await publisher.publish(request)
        assert not raised.value.retry
        await publisher.stop()

    run(main())


async def opened(publisher: PublisherProcess, place: Place) -> Held:
    """What the table holds; asked again if the last kill is noticed only now."""
    while True:
        try:
            return await publisher.open_table("orders", str(place.directory))
        except PublishError as error:
            assert error.retry


def test_killed_again_and_again_every_row_is_there_once(place: Place) -> None:
    rng = random.Random(seed_for("kills of the publisher"))

    async def main() -> None:
        publisher = PublisherProcess(now_ms)
        deaths = 0

        async def kill_sometimes() -> None:
            nonlocal deaths
            while deaths < 5:  # on a busy machine there may be no process for a while
                await asyncio.sleep(0.3 + rng.random() / 5)
                if publisher.pid is not None:
                    with contextlib.suppress(ProcessLookupError):  # nor has it noticed the last kill yet
                        os.kill(publisher.pid, signal.SIGKILL)
                        deaths += 1

        killer = asyncio.create_task(kill_sometimes())
        while not killer.done():
            request = place.next()
            while True:
                try:
                    await publisher.publish(request)
                    break
                except PublishError as error:
                    assert error.retry
        await killer
        assert deaths == 5
        assert (await opened(publisher, place)).next_offsets == {"orders": {0: place.log.ends[ORDERS]}}
        await publisher.stop()

    run(main())
    assert place.offsets() == list(range(place.log.ends[ORDERS]))


def test_an_idle_process_is_ended_and_started_again(place: Place) -> None:
    async def main() -> None:
        publisher = PublisherProcess(now_ms, idle_seconds=0.05)
        await publisher.publish(place.next())
        first = publisher.pid
        assert first is not None
        while psutil.pid_exists(first):
            await asyncio.sleep(0.01)
        assert (await publisher.publish(place.next())).rows == 10
        assert publisher.pid != first
        await publisher.stop()

    run(main())
    assert place.offsets() == list(range(20))


def test_a_terminals_interrupt_is_for_the_broker(place: Place) -> None:
    async def main() -> None:
        publisher = PublisherProcess(now_ms)
        await publisher.open_table("orders", str(place.directory))
        assert publisher.pid is not None
        os.kill(publisher.pid, signal.SIGINT)
        assert (await publisher.publish(place.next())).rows == 10
        await publisher.stop()

    run(main())


def test_a_request_that_was_given_up_disturbs_no_other(place: Place) -> None:
    async def main() -> None:
        publisher = PublisherProcess(now_ms)
        given_up = asyncio.create_task(publisher.publish(place.next()))
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        await publisher.publish(place.next())
        await publisher.stop()

    run(main())
    assert len(place.offsets()) in (10, 20)


@pytest.mark.parametrize(
    ("command", "retry"),
    [
        (["/no/such/program"], True),
        ([sys.executable, "-c", "pass"], True),
        ([sys.executable, "-c", "print('garbage', flush=True); import time; time.sleep(60)"], True),
        ([sys.executable, "-c", 'input(); print(\'{"id":1,"sung":{}}\', flush=True); input()'], False),
    ],
)
def test_a_process_that_is_no_publisher(place: Place, command: list[str], retry: bool) -> None:
    async def main() -> None:
        publisher = PublisherProcess(now_ms, command=command)
        with pytest.raises(PublishError) as raised:
            await publisher.open_table("orders", str(place.directory))
        assert raised.value.retry == retry
        await publisher.stop()

    run(main())


def test_it_ends_with_its_broker(place: Place) -> None:
    """A broker that is killed leaves no publisher behind."""
    program = (
        "import asyncio, sys, time\n"
        "from faircopy.publish.client import PublisherProcess\n"
        "async def main():\n"
        "    publisher = PublisherProcess(lambda: 0)\n"
        f"    await publisher.open_table('orders', {str(place.directory)!r})\n"
        "    print(publisher.pid, flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )

    async def main() -> None:
        broker = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE
        )
        assert broker.stdout
        pid = int(await broker.stdout.readline())
        broker.kill()
        await broker.wait()
        while psutil.pid_exists(pid):
            await asyncio.sleep(0.01)

    run(main())


def test_a_large_cut_takes_little_memory(place: Place, tmp_path: Path) -> None:
    """128 MiB at once: memory grows by a few row groups, not by the cut, and shrinks again."""
    batch = bytearray(build_batch([NewRecord(os.urandom(1000), timestamp_ms=1000)] * 1000))
    path, batches = tmp_path / "large.log", (128 << 20) // len(batch)
    with path.open("wb") as file:
        for number in range(batches):
            batch[:8] = (number * 1000).to_bytes(8, "big")
            file.write(batch)
    chunk = Chunk(str(path), 0, batches * len(batch))
    large = Publish("large", str(tmp_path / "large"), (Cut("large", "0f", 0, 0, batches * 1000, (chunk,)),))

    async def main() -> None:
        publisher = PublisherProcess(now_ms)
        await publisher.open_table("large", str(tmp_path / "large"))
        assert publisher.pid is not None
        before_mib = memory_mib(publisher.pid, "VmRSS")
        assert (await publisher.publish(large)).rows == batches * 1000
        assert memory_mib(publisher.pid, "VmHWM") < before_mib + 80
        assert memory_mib(publisher.pid, "VmRSS") < before_mib + 25
        await publisher.stop()

    run(main())


def memory_mib(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(name))
