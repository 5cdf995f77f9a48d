"""Transactions one after the other, by several producers at once, each in a thread of its own."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from confluent_kafka import Producer

from bench.load.clients import latency_producer
from bench.load.message import UNMEASURED, stamped
from bench.load.timing import Timer
from bench.load.watcher import Arrival, Watcher
from faircopy.errors import FaircopyError

COMMIT_SECONDS_MAX = 60.0
WAKE_SECONDS_MAX = 30.0
LINGER_SECONDS = 30.0
NOTHING = contextlib.nullcontext()


class MissingMessages(FaircopyError):
    """The consumer did not receive exactly the committed messages."""


class TransactionTimes:
    """The measured times of many transactions."""

    def __init__(self) -> None:
        self.begin_to_ack = Timer()
        self.commit_to_ack = Timer()
        self.flushed_commit_to_ack = Timer()
        self.ack_to_visible = Timer()
        self.end_to_end = Timer()
        self.per_second: list[float] = []

    @property
    def count(self) -> int:
        """How many transactions were committed, flushed before the call or not."""
        return self.commit_to_ack.count + self.flushed_commit_to_ack.count

    def merge_acks(self, other: TransactionTimes) -> None:
        """Add the times of another producer."""
        self.begin_to_ack.merge(other.begin_to_ack)
        self.commit_to_ack.merge(other.commit_to_ack)
        self.flushed_commit_to_ack.merge(other.flushed_commit_to_ack)


class Load(NamedTuple):
    """The load of each producer: transactions with a message in each partition, and a pause between."""

    topic: str
    partitions: int
    producers: int
    pause_seconds: float = 0.0


class Crowd:
    """Producers of one system, each with a transactional id and a group of transactions of its own."""

    def __init__(self, address: str, name: str, producers: int) -> None:
        def make(number: int) -> Producer:
            return latency_producer(address, f"{name}-{number}")

        with ThreadPoolExecutor(16) as pool:
            self._producers = list(pool.map(make, range(producers)))
        self._numbers: Iterator[int] = itertools.count(UNMEASURED + 1)
        self.transactions = 0

    def next_number(self) -> int:
        """The number of the next transaction."""
        self.transactions += 1
        return next(self._numbers)

    def each(self, producers: int, work: Callable[[Producer], object]) -> None:
        """Call `work` with each of the first producers at the same time; re-raises the first exception."""
        with ThreadPoolExecutor(producers) as pool:
            for done in [pool.submit(work, producer) for producer in self._producers[:producers]]:
                done.result()

    def run(
        self,
        watcher: Watcher,
        load: Load,
        seconds: float,
        least: int,
        times: TransactionTimes,
        during: contextlib.AbstractContextManager[object] = NOTHING,
    ) -> None:
        """Measure for some seconds, after a warm-up; `watcher` notes when messages become visible, and
        `during` is entered for as long as is measured.

        If there are fewer than `least` transactions, it continues, for at most ten times as long.
        """
        watcher.assign(load.topic, load.partitions)
        self.warm_up(watcher, load.topic, load.partitions, load.producers)
        acked_ns: dict[int, int] = {}
        lock = threading.Lock()
        began = time.monotonic()

        def is_wanted(done: int) -> bool:
            elapsed = time.monotonic() - began
            return elapsed < seconds or (done * load.producers < least and elapsed < 10 * seconds)

        def repeat(producer: Producer) -> None:
            mine = TransactionTimes()
            acks: dict[int, int] = {}
            while is_wanted(len(acks)):
                number = self.next_number()
                is_flushed = len(acks) % 2 == 1
                acks[number] = transact(
                    producer, load.topic, load.partitions, number, mine, is_flushed=is_flushed
                )
                time.sleep(load.pause_seconds)
            with lock:
                acked_ns.update(acks)
                times.merge_acks(mine)

        with during:
            self.each(load.producers, repeat)
        times.per_second.append(len(acked_ns) / (time.monotonic() - began))
        count_arrivals(watcher, len(acked_ns) * load.partitions, acked_ns, times)

    def warm_up(self, watcher: Watcher, topic: str, partitions: int, producers: int) -> None:
        """Run transactions until the watcher has received a message from every partition."""
        unused = TransactionTimes()
        deadline = time.monotonic() + WAKE_SECONDS_MAX
        self.each(producers, lambda producer: transact(producer, topic, partitions, UNMEASURED, unused))
        while not watcher.is_awake() and time.monotonic() < deadline:
            transact(self._producers[0], topic, partitions, UNMEASURED, unused)


def transact(
    producer: Producer,
    topic: str,
    partitions: int,
    number: int,
    times: TransactionTimes,
    *,
    is_flushed: bool = False,
) -> int:
    """One transaction with one message in each partition. Returns the time of its ack, in nanoseconds.

    With `is_flushed` it waits for the messages' acks before it calls commit, so the time is that of the
    commit alone.
    """
    began_ns = time.monotonic_ns()
    producer.begin_transaction()
    for partition in range(partitions):
        producer.produce(topic, stamped(number), partition=partition)
    if is_flushed:
        producer.flush(COMMIT_SECONDS_MAX)
    asked_ns = time.monotonic_ns()
    producer.commit_transaction(COMMIT_SECONDS_MAX)
    acked_ns = time.monotonic_ns()
    (times.flushed_commit_to_ack if is_flushed else times.commit_to_ack).record((acked_ns - asked_ns) / 1e9)
    if not is_flushed:
        times.begin_to_ack.record((acked_ns - began_ns) / 1e9)
    return acked_ns


def count_arrivals(
    watcher: Watcher, expected: int, acked_ns: dict[int, int], times: TransactionTimes
) -> None:
    """Join the watcher's arrivals with the acks. A transaction is visible when its last message is.

    Raises MissingMessages.
    """
    visible_ns: dict[int, int] = {}
    for transaction, sent_ns, arrived_ns in all_of(watcher, expected):
        times.end_to_end.record((arrived_ns - sent_ns) / 1e9)
        visible_ns[transaction] = max(visible_ns.get(transaction, 0), arrived_ns)
    for transaction, arrived_ns in visible_ns.items():
        if transaction in acked_ns:
            times.ack_to_visible.record((arrived_ns - acked_ns[transaction]) / 1e9)


def all_of(watcher: Watcher, expected: int) -> list[Arrival]:
    """All expected arrivals. Raises MissingMessages: a system that loses some does not count as faster."""
    arrivals = watcher.take(expected, LINGER_SECONDS)
    if len(arrivals) != expected:
        raise MissingMessages(
            f"{len(arrivals)} of {expected} committed messages came within {LINGER_SECONDS:.0f} s"
        )
    return arrivals
