"""What aborted transactions cost readers: time, bytes over the wire, bytes on disk."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer

from bench.load.clients import committed_consumer, delete_topic, make_topic, places, throughput_producer
from bench.protocols.correctness import Incorrect
from bench.results import AbortCost
from bench.systems.system import Peer, size_bytes

TOPIC = "aborts"
TRANSACTION_MESSAGES = 1_000
READ_AT_ONCE = 10_000
READ_SECONDS_MAX = 120.0
STATISTICS_MS = 200


class Reading(NamedTuple):
    """What one reader received, and how long it took."""

    delivered: int
    seconds: float
    wire_bytes: int


def measure(
    systems: Iterable[Peer],
    percents: Iterable[int],
    messages: int,
    message_bytes: int,
    rounds: int,
    seed: int,
    progress: Callable[[str], None],
) -> list[AbortCost]:
    """Write the same input to each system; then read it from each in turn, several times."""
    rows = []
    listed = list(systems)
    for percent in percents:
        for peer in listed:
            progress(f"{peer.about.name}: writing {messages:,} messages, {percent} % aborted")
            make_topic(peer.address, TOPIC, 1)
            fill(peer.address, messages, message_bytes, percent, seed)
        readings: dict[str, list[Reading]] = {peer.about.name: [] for peer in listed}
        committed = messages - messages * percent // 100
        for number in range(rounds):
            for place in range(len(listed)):
                peer = listed[(place + number) % len(listed)]
                progress(f"{peer.about.name}: reading, {percent} % aborted, round {number + 1} of {rounds}")
                readings[peer.about.name].append(read(peer.address, committed))
        for peer in listed:
            rows.append(row_of(peer, percent, messages, message_bytes, readings[peer.about.name]))
            delete_topic(peer.address, TOPIC)
    return rows


def row_of(peer: Peer, percent: int, messages: int, message_bytes: int, readings: list[Reading]) -> AbortCost:
    """The row of one system: bytes on the wire are those of the reading with the most."""
    return AbortCost(
        peer.about.name,
        percent,
        messages,
        message_bytes,
        readings[0].delivered,
        [reading.seconds for reading in readings],
        max(reading.wire_bytes for reading in readings),
        sum(map(size_bytes, peer.log_directories(TOPIC))),
        sum(map(size_bytes, peer.topic_directories(TOPIC))),
    )


def fill(address: str, messages: int, message_bytes: int, percent: int, seed: int) -> None:
    """Write transactions of a thousand messages; exactly `percent` % of them abort, at random places."""
    transactions = messages // TRANSACTION_MESSAGES
    is_aborted = [number < transactions * percent // 100 for number in range(transactions)]
    random.Random(seed).shuffle(is_aborted)
    producer = throughput_producer(address, TOPIC)
    value = os.urandom(message_bytes)
    for aborts in is_aborted:
        producer.begin_transaction()
        for _ in range(TRANSACTION_MESSAGES):
            send(producer, value)
        producer.flush(60)
        if aborts:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)


def send(producer: Producer, value: bytes) -> None:
    """Send one message, and wait while the client's queue is full."""
    while True:
        try:
            producer.produce(TOPIC, value, partition=0)
            return
        except BufferError:
            producer.poll(0.01)


def read(address: str, expected: int) -> Reading:
    """Read all committed messages, from the first to the last. Raises TimeoutError, Incorrect."""
    received: list[int] = [0]

    def note(statistics: str) -> None:
        received.append(sum(broker["rxbytes"] for broker in json.loads(statistics)["brokers"].values()))

    consumer = committed_consumer(
        address,
        {"stats_cb": note, "statistics.interval.ms": STATISTICS_MS, "fetch.message.max.bytes": 10 << 20},
    )
    consumer.assign(places(TOPIC, 1, 0))
    began = time.monotonic()
    delivered = 0
    while delivered < expected:
        for message in consumer.consume(READ_AT_ONCE, 0.05):
            error = message.error()
            if error is None:
                delivered += 1
            elif error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
        if time.monotonic() > began + READ_SECONDS_MAX:
            raise TimeoutError(
                f"{delivered} of {expected} messages came from {address} in {READ_SECONDS_MAX:.0f} s"
            )
    seconds = time.monotonic() - began
    # The statistics still have to count the last bytes; and a broker that shows aborted messages shows more.
    more = [
        message
        for message in consumer.consume(READ_AT_ONCE, 2 * STATISTICS_MS / 1000)
        if message.error() is None
    ]
    consumer.close()
    if more or delivered != expected:
        raise Incorrect(
            f"{address} shows {delivered + len(more)} messages, not the {expected} that were committed"
        )
    return Reading(delivered, seconds, max(received))
