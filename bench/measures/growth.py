"""Growth: the same figures with more partitions, with more open transactions, and with a longer log.

Open transactions are in another topic than the one that is measured. In the same partitions they would hold
up readers of committed messages from Kafka (which the stall measures), and the figures could not be compared.
"""

from __future__ import annotations

import itertools
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.load.clients import committed_consumer, make_topic, throughput_producer
from bench.load.open_transactions import open_transactions
from bench.load.transactions import Crowd, Load, TransactionTimes
from bench.load.watcher import Watcher
from bench.measures.start import Factory, seconds_to_start
from bench.results import Growth, Histogram, Skipped
from bench.systems.system import Peer, memory_bytes

TOPIC = "growth"
OPEN_TOPIC = "growth-open"
PARTITIONS = 4  # of a topic, unless the number of partitions grows
COMMIT_PARTITIONS_MAX = 4
PRODUCE_PARTITIONS_MAX = 100
MESSAGE_BYTES = 1024
RUN_MESSAGES = 500
WARM_UP_PART = 0.1  # of the measured seconds
OPENING_SECONDS_MAX = 120.0
FLUSH_SECONDS_MAX = 120.0
ANSWER_SECONDS_MAX = 60.0
SPACE_FACTOR = 3


class Sizes(NamedTuple):
    """What grows, and the sizes at which it is measured."""

    partitions: list[int]
    open_transactions: list[int]
    log_bytes: list[int]


class Grown(NamedTuple):
    """The state of a system when it is measured: the size it has reached, and the topic's partitions."""

    size: int
    partitions: int


class Figures(NamedTuple):
    """The figures at each size; without `restart_seconds`, since a restart ends the state that has grown."""

    commit_to_ack: Histogram
    produced_bytes_per_second: float
    memory_bytes: int


def measure(
    directory: Path,
    factories: dict[str, Factory],
    sizes: Sizes,
    seconds: float,
    progress: Callable[[str], None],
) -> tuple[list[Growth], list[Skipped]]:
    """Every system at every size, each time on an empty directory below `directory`; sizes without space are
    skipped."""
    rows: list[Growth] = []
    skipped: list[Skipped] = []
    for of, wanted in zip(GROW, sizes, strict=True):
        for size, (name, factory) in itertools.product(wanted, factories.items()):
            what = f"{name} with {size:,} {of}"
            if of == LOG_BYTES and (lack := lack_of_space(directory, size)):
                skipped.append(Skipped(f"growth: {what}", lack))
                continue
            progress(what)
            with TemporaryDirectory(prefix="growth-", dir=directory) as place:
                rows.append(row_of(name, factory(Path(place)), of, size, seconds))
    return rows, skipped


def lack_of_space(directory: Path, log_bytes: int) -> str:
    """Why a log of this size is too large for this disk; empty if it is not."""
    free_bytes, needed_bytes = shutil.disk_usage(directory).free, SPACE_FACTOR * log_bytes
    if free_bytes >= needed_bytes:
        return ""
    return f"it needs {needed_bytes / 1e9:.0f} GB of disk, {free_bytes / 1e9:.0f} GB are free"


def row_of(name: str, peer: Peer, of: str, size: int, seconds: float) -> Growth:
    """Start it, let it grow, measure it, and kill and restart it. In the end it is killed, since its
    directory is deleted."""
    try:
        peer.start()
        with GROW[of](peer.address, size) as grown:
            figures = figures_of(peer, grown.partitions, seconds)
        peer.kill()
        return Growth(name, of, grown.size, *figures, seconds_to_start(peer))
    finally:
        peer.kill()


# -- what grows ----------------------------------------------------------------------------------------------


@contextmanager
def partitions_grown(address: str, size: int) -> Iterator[Grown]:
    """A topic of `size` partitions."""
    make_topic(address, TOPIC, size)
    yield Grown(size, size)


@contextmanager
def open_transactions_grown(address: str, size: int) -> Iterator[Grown]:
    """`size` open transactions in another topic, or as many as can be opened in two minutes."""
    make_topic(address, TOPIC, PARTITIONS)
    make_topic(address, OPEN_TOPIC, PARTITIONS)
    with open_transactions(address, OPEN_TOPIC, PARTITIONS, size, OPENING_SECONDS_MAX) as opened:
        yield Grown(opened, PARTITIONS)


@contextmanager
def log_grown(address: str, size: int) -> Iterator[Grown]:
    """A log with `size` bytes of messages. Raises RuntimeError if the broker did not take them all."""
    make_topic(address, TOPIC, PARTITIONS)
    sent = produce(throughput_producer(address), PARTITIONS, messages_max=size // MESSAGE_BYTES)
    logged = messages_in_log(committed_consumer(address))
    if logged != sent:
        raise RuntimeError(f"{address} was sent {sent:,} messages, and its log has {logged:,}")
    yield Grown(size, PARTITIONS)


LOG_BYTES = "log bytes"
GROW: dict[str, Callable[[str, int], AbstractContextManager[Grown]]] = {
    "partitions": partitions_grown,
    "open transactions": open_transactions_grown,
    LOG_BYTES: log_grown,
}
"""By the names of the result file, in the order of `Sizes`."""


def messages_in_log(consumer: Consumer) -> int:
    """The number of offsets between the starts and the ends of the measured topic's partitions."""
    places = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
    ends = [consumer.get_watermark_offsets(place, ANSWER_SECONDS_MAX) for place in places]
    consumer.close()
    return sum(high - low for low, high in ends)


# -- the figures ---------------------------------------------------------------------------------------------


def figures_of(peer: Peer, partitions: int, seconds: float) -> Figures:
    """Commits of one producer, then plain messages of one producer, then the memory of the broker."""
    times = TransactionTimes()
    crowd = Crowd(peer.address, TOPIC, 1)
    with Watcher(peer.address) as watcher:
        crowd.run(watcher, Load(TOPIC, min(COMMIT_PARTITIONS_MAX, partitions), 1), seconds, 0, times)
    produced = produced_bytes_per_second(peer.address, min(PRODUCE_PARTITIONS_MAX, partitions), seconds)
    return Figures(times.commit_to_ack.histogram(), produced, memory_bytes(peer.pid))


def produced_bytes_per_second(address: str, partitions: int, seconds: float) -> float:
    """The speed at which one producer's messages are acked, after a warm-up."""
    producer = throughput_producer(address)
    produce(producer, partitions, seconds=WARM_UP_PART * seconds)
    began = time.monotonic()
    messages = produce(producer, partitions, seconds=seconds)
    return messages * MESSAGE_BYTES / (time.monotonic() - began)


def produce(
    producer: Producer, partitions: int, *, seconds: float = math.inf, messages_max: float = math.inf
) -> int:
    """Send messages of 1 KiB for some seconds, or up to `messages_max`. Returns how many, all acked. Raises
    TimeoutError.

    They go to the partitions in turn, in runs, so that batches are full however many partitions there are.
    """
    value = os.urandom(MESSAGE_BYTES)
    until = time.monotonic() + seconds
    sent = 0
    for partition in itertools.cycle(range(partitions)):
        if sent >= messages_max or time.monotonic() >= until:
            break
        run = int(min(RUN_MESSAGES, messages_max - sent))
        for _ in range(run):
            send(producer, value, partition)
        sent += run
    if unacked := producer.flush(FLUSH_SECONDS_MAX):
        raise TimeoutError(f"{unacked:,} messages had no ack after {FLUSH_SECONDS_MAX:.0f} s")
    return sent


def send(producer: Producer, value: bytes, partition: int) -> None:
    """Send one message, as soon as the client has room for it."""
    while True:
        try:
            producer.produce(TOPIC, value, partition=partition)
            return
        except BufferError:
            producer.poll(0.001)
