"""The latency of transactions, by partitions and producers; and of plain messages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from bench.load.clients import delete_topic, latency_producer, make_topic
from bench.load.message import UNMEASURED, stamped
from bench.load.timing import Timer
from bench.load.transactions import Crowd, Load, TransactionTimes, all_of
from bench.load.watcher import Watcher
from bench.results import Latency, PlainLatency
from bench.systems.system import Served

TOPIC = "latency"


class Cell(NamedTuple):
    """One combination. A round takes the profile's seconds, or longer until there are enough transactions."""

    partitions: int
    producers: int
    pause_ms: int = 0
    least: int = 20


class PlainTimes:
    """The measured times of plain messages."""

    def __init__(self) -> None:
        self.send_to_ack = Timer()
        self.end_to_end = Timer()


def measure(
    systems: Iterable[Served],
    cells: Mapping[str, list[Cell]],
    rounds: int,
    seconds: float,
    progress: Callable[[str], None],
    between: Callable[[], None] = lambda: None,
) -> list[Latency | PlainLatency]:
    """The rows of every system's cells, by its name; systems take turns in each round, each time in another
    order.

    `between` is called before and after each round.
    """
    listed = list(systems)
    times = {
        (peer.about.name, cell): TransactionTimes() for peer in listed for cell in cells[peer.about.name]
    }
    plain = {peer.about.name: PlainTimes() for peer in listed}
    between()
    for number in range(rounds):
        for place in range(len(listed)):
            peer = listed[(place + number) % len(listed)]
            progress(f"round {number + 1} of {rounds}: {peer.about.name}")
            turn(peer, number, cells[peer.about.name], seconds, times, plain[peer.about.name])
        between()
    return [
        *(row_of(name, cell, rounds, taken) for (name, cell), taken in times.items()),
        *(
            PlainLatency(name, rounds, t.send_to_ack.histogram(), t.end_to_end.histogram())
            for name, t in plain.items()
        ),
    ]


def turn(
    peer: Served,
    number: int,
    cells: list[Cell],
    seconds: float,
    times: dict[tuple[str, Cell], TransactionTimes],
    plain: PlainTimes,
) -> None:
    """One system's turn in one round, on a topic of its own."""
    topic = f"{TOPIC}-{number}"
    make_topic(peer.address, topic, max(cell.partitions for cell in cells))
    crowd = Crowd(peer.address, topic, max(cell.producers for cell in cells))
    with Watcher(peer.address) as watcher:
        for cell in cells:
            load = Load(topic, cell.partitions, cell.producers, cell.pause_ms / 1000)
            crowd.run(watcher, load, seconds, cell.least, times[peer.about.name, cell])
        measure_plain(peer.address, watcher, topic, seconds, plain)
    delete_topic(peer.address, topic)


def warm_up(peer: Served, cell: Cell, seconds: float) -> None:
    """Like a turn, but the results are discarded."""
    turn(peer, 0, [cell], seconds, {(peer.about.name, cell): TransactionTimes()}, PlainTimes())


def row_of(system: str, cell: Cell, rounds: int, times: TransactionTimes) -> Latency:
    """The row of one cell, for all its rounds together."""
    return Latency(
        system,
        cell.partitions,
        cell.producers,
        cell.pause_ms,
        rounds,
        times.count,
        times.per_second,
        times.begin_to_ack.histogram(),
        times.commit_to_ack.histogram(),
        times.flushed_commit_to_ack.histogram(),
        times.ack_to_visible.histogram(),
        times.end_to_end.histogram(),
    )


def measure_plain(address: str, watcher: Watcher, topic: str, seconds: float, times: PlainTimes) -> None:
    """Send one message at a time, each after the last was acked."""
    producer = latency_producer(address)
    acked = threading.Event()

    def send(number: int) -> None:
        acked.clear()
        sent_ns = time.monotonic_ns()
        # Without a thread that polls, the ack would be seen when we look.
        producer.produce(topic, stamped(number), partition=0, on_delivery=lambda *_: acked.set())
        while not acked.is_set():
            producer.poll(1.0)
        if number != UNMEASURED:
            times.send_to_ack.record((time.monotonic_ns() - sent_ns) / 1e9)

    watcher.assign(topic, 1)
    while not watcher.is_awake():
        send(UNMEASURED)
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        send(1)
        count += 1
    for _, sent_ns, arrived_ns in all_of(watcher, count):
        times.end_to_end.record((arrived_ns - sent_ns) / 1e9)
