"""Freshness of plain tables: the age of messages when readers can see them.

`python -m bench.measures.plain_tables` prints what a publication costs while a table grows (by a clock that
goes faster), and the freshness of many topics that are written to without a pause, each with its own table.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as parquet
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.results import PlainFreshness, PlainGrowth
from faircopy.publish.files import Files
from faircopy.publish.requests import Chunk, Cut
from faircopy.publish.table import Table
from faircopy.wire.records import NewRecord, build_batch
from tests.broker_process import BrokerProcess

SYSTEM = "local-copy os"
INTERVAL_MS = 10_000
START_MS = 1_790_000_000_000
MESSAGES = 2
PARTS = 10


def growing_table(directory: Path, publications: int) -> Iterator[tuple[int, float, float]]:
    """Publish to one table. Yields, ten times: publications so far, median and mean seconds of the last."""
    log = directory / "0.log"
    now_ms = START_MS
    table = Table(Files(), directory / "plain" / "orders", lambda: now_ms)
    seconds: list[float] = []
    with log.open("wb", buffering=0) as file:
        for number in range(publications):
            now_ms += INTERVAL_MS
            first, position = MESSAGES * number, file.tell()
            batch = build_batch([NewRecord(b"x" * 100, b"key", now_ms)] * MESSAGES, base_offset=first)
            file.write(batch)
            chunk = Chunk(str(log), position, len(batch))
            began = time.perf_counter()
            table.publish([Cut("orders", "0f", 0, first, first + MESSAGES, (chunk,))])
            seconds.append(time.perf_counter() - began)
            if (number + 1) % (publications // PARTS) == 0:
                yield number + 1, statistics.median(seconds), statistics.mean(seconds)
                seconds.clear()
    table.close()


def write_to(address: str, topics: list[str], until: float) -> None:
    """Send a message to each topic each second."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    while time.monotonic() < until:
        began = time.monotonic()
        for topic in topics:
            producer.produce(topic, b"x" * 100, partition=0)
            producer.poll(0)
        producer.flush(30)
        time.sleep(max(0.0, began + 1 - time.monotonic()))


def freshness_seconds(data: Path, topics: list[str], seen: set[Path]) -> Iterator[float]:
    """How old the messages of files are that have appeared since the last call."""
    for topic in topics:
        for path in (data / "plain" / topic).glob("d-*..*.parquet"):
            if path not in seen:
                seen.add(path)
                published = path.stat().st_ctime
                times = parquet.read_table(path, columns=["timestamp"])["timestamp"].to_pylist()
                yield from (published - sent.timestamp() for sent in times)


def many_topics(directory: Path, topics: int, seconds: float) -> list[float]:
    """The ages of messages when they were published, of `topics` topics with a table each."""
    names = [f"topic-{number}" for number in range(topics)]
    with BrokerProcess(directory, "topic.partitions=1", "durability=os") as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        for made in admin.create_topics([NewTopic(name, 1) for name in names]).values():
            made.result(60)
        writer = threading.Thread(target=write_to, args=(broker.address, names, time.monotonic() + seconds))
        writer.start()
        writer.join()
        time.sleep(2 * INTERVAL_MS / 1000)
        return sorted(freshness_seconds(broker.data_directory, names, set()))


def measure(
    directory: Path, publications: int, topics: int, seconds: float, progress: Callable[[str], None]
) -> list[PlainGrowth | PlainFreshness]:
    """A row for each tenth of so many publications to one table, and one for many topics."""
    found: list[PlainGrowth | PlainFreshness] = []
    with TemporaryDirectory(dir=directory) as scratch:
        for number, median, mean in growing_table(Path(scratch), publications):
            progress(f"{number:,} of {publications:,} publications")
            found.append(PlainGrowth(SYSTEM, number, median, mean))
    progress(f"{topics} topics with a table each")
    with TemporaryDirectory(dir=directory) as scratch:
        ages = many_topics(Path(scratch), topics, seconds)
    p50, p99 = (ages[len(ages) * percent // 100] for percent in (50, 99))
    return [*found, PlainFreshness(SYSTEM, topics, len(ages), INTERVAL_MS / 1000, p50, p99)]


def main() -> None:
    """Measure what the arguments ask for, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--publications", type=int, default=100_000)
    parser.add_argument("--topics", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=90.0)
    asked = parser.parse_args()
    with TemporaryDirectory() as directory:
        for row in measure(Path(directory), asked.publications, asked.topics, asked.seconds, print):
            print(row)


if __name__ == "__main__":
    main()
