"""Throughput of producing and then consuming, plain and in transactions; and what it costs the broker."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer

from bench.load.clients import committed_consumer, delete_topic, make_topic, places, throughput_producer
from bench.results import Throughput
from bench.systems.system import Peer, cpu_seconds, memory_bytes, written_bytes

TOPIC = "throughput"
WITHOUT_TRANSACTIONS = 0
LOOK_EVERY_MESSAGES = 100
SAMPLE_SECONDS = 0.05
READ_SECONDS_MAX = 120.0
WARM_UP_SECONDS = 0.3


class Case(NamedTuple):
    """How often to commit, 0 for never, and how large messages are."""

    commit_every_ms: int
    message_bytes: int


class Run(NamedTuple):
    """The results of one round of one case."""

    produced_bytes_per_second: float
    consumed_bytes_per_second: float
    cpu_seconds_per_million: float
    peak_memory_bytes: int
    written_per_byte: float


def measure(
    systems: Iterable[Peer],
    cases: Mapping[str, list[Case]],
    rounds: int,
    seconds: float,
    bytes_max: int,
    progress: Callable[[str], None],
) -> list[Throughput]:
    """The rows of every system's cases, by its name; systems take turns in each round. A case ends after
    `seconds` or `bytes_max`."""
    listed = list(systems)
    runs: dict[tuple[str, Case], list[Run]] = {
        (peer.about.name, case): [] for peer in listed for case in cases[peer.about.name]
    }
    for number in range(rounds):
        for place in range(len(listed)):
            peer = listed[(place + number) % len(listed)]
            progress(f"round {number + 1} of {rounds}: {peer.about.name}")
            for case in cases[peer.about.name]:
                runs[peer.about.name, case].append(run(peer, case, seconds, bytes_max))
    return [row_of(name, case, taken) for (name, case), taken in runs.items()]


def row_of(system: str, case: Case, runs: list[Run]) -> Throughput:
    """The row of one case: each run's figures, and the peak over all runs."""
    return Throughput(
        system,
        *case,
        [run.produced_bytes_per_second for run in runs],
        [run.consumed_bytes_per_second for run in runs],
        [run.cpu_seconds_per_million for run in runs],
        max(run.peak_memory_bytes for run in runs),
        [run.written_per_byte for run in runs],
    )


def run(peer: Peer, case: Case, seconds: float, bytes_max: int) -> Run:
    """One producer to one partition at full speed, then one consumer of all its messages."""
    make_topic(peer.address, TOPIC, 1)
    transactional_id = TOPIC if case.commit_every_ms else None
    producer = throughput_producer(peer.address, transactional_id)
    with Costs(peer.pid) as costs:
        warm = produce(producer, case, WARM_UP_SECONDS, bytes_max // 10)
        began = time.monotonic()
        messages = produce(producer, case, seconds, bytes_max)
        produced = time.monotonic() - began
        consumed = consume(peer.address, warm + messages)
    delete_topic(peer.address, TOPIC)
    all_bytes = (warm + messages) * case.message_bytes
    return Run(
        messages * case.message_bytes / produced,
        all_bytes / consumed,
        costs.cpu_seconds / (warm + messages) * 1e6,
        costs.peak_memory_bytes,
        costs.written_bytes / all_bytes,
    )


def produce(producer: Producer, case: Case, seconds: float, bytes_max: int) -> int:
    """Send until time is up or `bytes_max` are sent. Return how many messages, all acked or committed."""
    value = os.urandom(case.message_bytes)
    until = time.monotonic() + seconds
    most = bytes_max // case.message_bytes
    sent = 0
    if case.commit_every_ms == WITHOUT_TRANSACTIONS:
        sent = send(producer, value, until, most, TOPIC)
        producer.flush(60)
        return sent
    while time.monotonic() < until and sent < most:
        producer.begin_transaction()
        sent += send(producer, value, time.monotonic() + case.commit_every_ms / 1000, most - sent, TOPIC)
        producer.commit_transaction(60)
    return sent


def send(producer: Producer, value: bytes, until: float, most: int, topic: str, partitions: int = 1) -> int:
    """Send until a moment, or up to `most` messages, to one partition after the other."""
    sent = 0
    while sent < most:
        try:
            producer.produce(topic, value, partition=sent % partitions)
            sent += 1
        except BufferError:
            producer.poll(0.001)
        if sent % LOOK_EVERY_MESSAGES == 0 and time.monotonic() >= until:
            break
    return sent


def consume(address: str, expected: int) -> float:
    """Read `expected` messages from the start; returns the seconds that this took. Raises TimeoutError."""
    consumer = committed_consumer(
        address, {"fetch.message.max.bytes": 10 << 20, "queued.max.messages.kbytes": 256 << 10}
    )
    began = time.monotonic()
    consumer.assign(places(TOPIC, 1, 0))
    deadline = began + READ_SECONDS_MAX
    received = 0
    while received < expected:
        for message in consumer.consume(10_000, 0.05):
            error = message.error()
            if error is None:
                received += 1
            elif error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"{received} of {expected} messages came from {address} in {READ_SECONDS_MAX:.0f} s"
            )
    seconds = time.monotonic() - began
    consumer.close()
    return seconds


class Costs:
    """The costs of a broker while this is open: CPU, peak memory, bytes given to the file system."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._is_over = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self.cpu_seconds = 0.0
        self.peak_memory_bytes = 0
        self.written_bytes = 0

    def _sample(self) -> None:
        while not self._is_over.wait(SAMPLE_SECONDS):
            self.peak_memory_bytes = max(self.peak_memory_bytes, memory_bytes(self._pid))

    def __enter__(self) -> Costs:
        self._cpu_before, self._written_before = cpu_seconds(self._pid), written_bytes(self._pid)
        self.peak_memory_bytes = memory_bytes(self._pid)
        self._sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._sampler.join()
        self.cpu_seconds = cpu_seconds(self._pid) - self._cpu_before
        self.written_bytes = written_bytes(self._pid) - self._written_before
