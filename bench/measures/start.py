"""Starts: on an empty directory, and after kill -9 under load; and the memory of an idle broker."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import KafkaException

from bench.load.clients import latency_producer, make_topic, serve
from bench.load.message import UNMEASURED, stamped
from bench.results import Start
from bench.systems.system import Peer, memory_bytes

TOPIC = "start"
PARTITIONS = 4
SETTLE_SECONDS = 1.0

Factory = Callable[[Path], Peer]


def measure(
    directory: Path,
    factories: dict[str, Factory],
    rounds: int,
    load_seconds: float,
    progress: Callable[[str], None],
) -> list[Start]:
    """Every system several times, each time on an empty directory."""
    times: dict[str, list[tuple[float, float, int]]] = {name: [] for name in factories}
    for number in range(rounds):
        for name, factory in factories.items():
            progress(f"round {number + 1} of {rounds}: {name}")
            place = directory / f"start-{number}"
            place.mkdir()
            times[name].append(start_and_restart(factory(place), load_seconds))
            shutil.rmtree(place)
    return [
        Start(name, [row[0] for row in rows], [row[1] for row in rows], max(row[2] for row in rows))
        for name, rows in times.items()
    ]


def start_and_restart(peer: Peer, load_seconds: float) -> tuple[float, float, int]:
    """Seconds of a cold start and of one after kill -9, and the memory of the idle broker in bytes."""
    cold = seconds_to_start(peer)
    try:
        time.sleep(SETTLE_SECONDS)
        memory = memory_bytes(peer.pid)
        kill_under_load(peer, load_seconds)
        return cold, seconds_to_start(peer), memory
    finally:
        peer.stop()


def seconds_to_start(peer: Peer) -> float:
    """From the start of the process until a client gets its first answer."""
    began = time.monotonic()
    peer.start()
    serve(peer.address)
    return time.monotonic() - began


def kill_under_load(peer: Peer, load_seconds: float) -> None:
    """kill -9 in the middle of transactions."""
    make_topic(peer.address, TOPIC, PARTITIONS)
    producer = latency_producer(peer.address, TOPIC)
    killer = threading.Timer(load_seconds, peer.kill)
    killer.start()
    try:
        while killer.is_alive():
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.produce(TOPIC, stamped(UNMEASURED), partition=partition)
            producer.commit_transaction(1.0)
    except KafkaException:
        # It was killed in the middle of a transaction.
        pass
    killer.join()
