"""Speed and memory in about two minutes: each figure beside its floor on this machine, in the same run.

    python -m bench.quick [--json FILE]

Machines are noisy, so what counts are the ratios. Nothing here fails a build.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click
import psutil
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from faircopy import __version__
from faircopy.storage.disk import Disk
from faircopy.storage.files import File
from tests.broker_process import BrokerProcess

VALUE = os.urandom(1024)
PLAIN_MESSAGES = 500_000
COMMITS = 400
VISIBLE_ROUNDS = 500
STALL_SECONDS = 60.0
STALL_PAUSE_SECONDS = 0.02


class Figure(NamedTuple):
    """One measured figure. `ratio` is to `floor`, measured in the same run; `limit` says what was aimed at."""

    name: str
    value: float
    unit: str
    floor: float | None
    floor_is: str
    limit: str
    is_met: bool

    @property
    def ratio(self) -> float | None:
        return self.value / self.floor if self.floor else None


def client(address: str) -> dict[str, object]:
    """The settings of every client here. librdkafka's own log lines would stand between the progress and the table."""
    return {"bootstrap.servers": address, "log_level": 0}


def percentile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * percent / 100), len(ordered) - 1)]


def milliseconds(function: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    function()
    return (time.perf_counter() - begin) * 1000


# -- floors ----------------------------------------------------------------------------------------------------------


def write_twice(directory: Path, size: int) -> float:
    """MB/s at which `size` bytes are written to two files, 1 MiB at a time."""
    piece = os.urandom(1 << 20)
    files = [os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for name in ("first", "second")]
    begin = time.perf_counter()
    for _ in range(size >> 20):
        for file in files:
            os.write(file, piece)
    seconds = time.perf_counter() - begin
    for file in files:
        os.close(file)
    return size / seconds / 1e6


def parallel_fdatasync(directory: Path, files: int, rounds: int = 300) -> float:
    """Median milliseconds of one fdatasync on each of so many preallocated files, side by side."""

    async def measure() -> float:
        disk = Disk(asyncio.get_running_loop())
        opened = [File(directory / f"sync-{number}", create=True) for number in range(files)]
        for file in opened:
            file.preallocate(8 << 20)
            file.sync()
        taken = []
        for number in range(rounds):
            begin = time.perf_counter()
            await asyncio.gather(*(disk.run(write_and_sync, file, number * 300) for file in opened))
            taken.append((time.perf_counter() - begin) * 1000)
        disk.close()
        return statistics.median(taken)

    return asyncio.run(measure())


def write_and_sync(file: File, position: int) -> None:
    file.write([b"x" * 300], position)
    file.sync()


# -- figures ---------------------------------------------------------------------------------------------------------


def make_topic(address: str, name: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(name, partitions)])[name].result(10)


def plain_produce(directory: Path) -> list[Figure]:
    with BrokerProcess(directory, "durability=os") as broker:
        make_topic(broker.address, "plain", 1)
        producer = Producer(
            {
                **client(broker.address),
                "acks": "all",
                "linger.ms": 5,
                "batch.size": 1_000_000,
                "queue.buffering.max.kbytes": 1 << 20,
                "queue.buffering.max.messages": 1_000_000,
            }
        )
        send(producer, PLAIN_MESSAGES // 10)
        begin = time.perf_counter()
        send(producer, PLAIN_MESSAGES)
        seconds = time.perf_counter() - begin
    rate = PLAIN_MESSAGES * len(VALUE) / seconds / 1e6
    floor = write_twice(directory, 1 << 30)
    return [
        Figure("plain produce, 1 KiB, durability os", rate, "MB/s", None, "", "at least 300", rate >= 300),
        Figure(
            "  the same", rate, "MB/s", floor, "os.write of the same bytes twice", "at least 1/3", rate * 3 >= floor
        ),
    ]


def send(producer: Producer, count: int) -> None:
    for _ in range(count):
        while True:
            try:
                producer.produce("plain", VALUE)
                break
            except BufferError:
                producer.poll(0.01)
    assert producer.flush(60) == 0


def commits(directory: Path) -> list[Figure]:
    floor = parallel_fdatasync(directory, 5)
    medians = {}
    with BrokerProcess(directory, "durability=fsync") as broker:
        make_topic(broker.address, "transactions", 16)
        producers = {count: transactional(broker.address, f"commit-{count}") for count in (1, 4, 16)}
        taken: dict[int, list[float]] = {count: [] for count in producers}
        for _ in range(COMMITS):
            # In turn, so that all meet the same noise.
            for count, producer in producers.items():
                producer.begin_transaction()
                for partition in range(count):
                    producer.produce("transactions", b"x" * 100, partition=partition)
                producer.flush()
                taken[count].append(milliseconds(lambda producer=producer: producer.commit_transaction(30)))  # type: ignore[misc]
        medians = {count: statistics.median(values) for count, values in taken.items()}
    return [
        Figure(
            "commit to ack, 4 partitions, p50", medians[4], "ms", floor, "parallel fdatasync of 5 files",
            "at most 4 times", medians[4] <= 4 * floor,
        ),
        Figure(
            "commit to ack, 16 partitions, p50", medians[16], "ms", medians[1], "the same with 1 partition",
            "at most 4 times", medians[16] <= 4 * medians[1],
        ),
        Figure("commit to ack, 4 partitions, p99", percentile(taken[4], 99), "ms", None, "", "", True),
    ]  # fmt: skip


def transactional(address: str, name: str) -> Producer:
    producer = Producer({**client(address), "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(30)
    return producer


class Watcher(threading.Thread):
    """A read_uncommitted consumer that waits in a fetch, and notes when each message came."""

    def __init__(self, address: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._consumer = Consumer(
            {
                **client(address),
                "group.id": "watcher",
                "isolation.level": "read_uncommitted",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 500,
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self.seen: dict[bytes, float] = {}
        self.arrived = threading.Event()
        self._is_over = False

    def run(self) -> None:
        while not self._is_over:
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.seen[message.value()] = time.perf_counter()
                self.arrived.set()
        self._consumer.close()

    def wait_for(self, value: bytes) -> float:
        """When this value came."""
        while value not in self.seen:
            self.arrived.wait(1)
            self.arrived.clear()
        return self.seen[value]

    def end(self) -> None:
        self._is_over = True
        self.join()


def ack_to_visible(directory: Path) -> list[Figure]:
    with BrokerProcess(directory, "durability=fsync") as broker:
        make_topic(broker.address, "visible", 1)
        watcher = Watcher(broker.address, "visible")
        watcher.start()
        producer = transactional(broker.address, "visible")
        taken = []
        for number in range(VISIBLE_ROUNDS):
            value = b"%d" % number
            producer.begin_transaction()
            producer.produce("visible", value, partition=0)
            producer.commit_transaction(30)
            acked = time.perf_counter()
            taken.append(max((watcher.wait_for(value) - acked) * 1000, 0.0))
        watcher.end()
    median = statistics.median(taken)
    return [
        Figure("commit ack to delivered, p50", median, "ms", None, "", "at most 2 ms", median <= 2),
        Figure("commit ack to delivered, p99", percentile(taken, 99), "ms", None, "", "", True),
    ]


def open_transaction(directory: Path) -> list[Figure]:
    with BrokerProcess(directory, "durability=fsync") as broker:
        make_topic(broker.address, "stall", 1)
        watcher = Watcher(broker.address, "stall")
        watcher.start()
        producer = Producer({**client(broker.address), "linger.ms": 0})
        deliveries(producer, watcher, b"warm", 2)
        before = deliveries(producer, watcher, b"before", STALL_SECONDS / 4)
        hung = transactional(broker.address, "hung")
        hung.begin_transaction()
        hung.produce("stall", b"hung", partition=0)
        hung.flush()
        during = deliveries(producer, watcher, b"during", STALL_SECONDS)
        watcher.end()
    name = f"delivery to others while a transaction is open for {STALL_SECONDS:.0f} s"
    return [
        Figure(
            f"{name}, p{percent}", percentile(during, percent), "ms", percentile(before, percent), "before it",
            "nothing measurable", percentile(during, percent) <= 1.25 * percentile(before, percent),
        )
        for percent in (50, 99)
    ]  # fmt: skip


def deliveries(producer: Producer, watcher: Watcher, name: bytes, seconds: float) -> list[float]:
    """Milliseconds from send to delivery of a message each so often."""
    taken = []
    for number in range(int(seconds / STALL_PAUSE_SECONDS)):
        value = name + b"%d" % number
        begin = time.perf_counter()
        producer.produce("stall", value, partition=0)
        producer.poll(0)
        taken.append((watcher.wait_for(value) - begin) * 1000)
        time.sleep(STALL_PAUSE_SECONDS)
    return taken


def start_and_memory(directory: Path) -> list[Figure]:
    starts = []
    for number in range(5):
        place = directory / str(number)
        place.mkdir()
        broker = BrokerProcess(place)
        starts.append(milliseconds(broker.start) / 1000)
        time.sleep(1.0)
        process = psutil.Process(broker.pid)
        family = [process, *process.children(recursive=True)]
        memory = sum(each.memory_info().rss for each in family) / (1 << 20)
        broker.stop()
    seconds = statistics.median(starts)
    return [
        Figure("ready on an empty directory", seconds, "s", None, "", "within 0.5 s", seconds <= 0.5),
        Figure("memory when idle", memory, "MiB", None, "", "under 90 MiB", memory < 90),
    ]


PARTS = {
    "start and memory": start_and_memory,
    "commit latency": commits,
    "ack to delivered": ack_to_visible,
    "plain produce": plain_produce,
    "an open transaction": open_transaction,
}


@click.command()
@click.option("--json", "path", type=click.Path(path_type=Path), help="Also write the figures here.")
@click.option("--only", type=click.Choice(list(PARTS)), help="Measure one part.")
def main(path: Path | None, only: str | None) -> None:
    """Measure, and print a table."""
    figures: list[Figure] = []
    console = Console()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        for name, measure in PARTS.items():
            if only in (None, name):
                task = progress.add_task(name)
                with tempfile.TemporaryDirectory(prefix="faircopy-bench-") as directory:
                    figures += measure(Path(directory))
                progress.remove_task(task)
    console.print(table_of(figures))
    if path is not None:
        path.write_text(json.dumps(document(figures), indent=2) + "\n")


def table_of(figures: list[Figure]) -> Table:
    table = Table("figure", "measured", "ratio", "to", "aim", "", box=None, header_style="bold")
    for figure in figures:
        ratio = f"{figure.ratio:.2f}" if figure.ratio is not None else ""
        verdict = ("[green]met[/]" if figure.is_met else "[red]missed[/]") if figure.limit else ""
        measured = f"{figure.value:.3g} {figure.unit}"
        table.add_row(figure.name, measured, ratio, figure.floor_is, figure.limit, verdict)
    return table


def document(figures: list[Figure]) -> dict[str, Any]:
    return {
        "faircopy": __version__,
        "python": sys.version.split()[0],
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "figures": [figure._asdict() | {"ratio": figure.ratio} for figure in figures],
    }


if __name__ == "__main__":
    main()
