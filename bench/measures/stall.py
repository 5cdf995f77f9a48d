"""The stall: how one hanging transaction affects the delivery of other producers' messages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from confluent_kafka import Producer

from bench.load.clients import delete_topic, latency_producer, make_topic
from bench.load.message import UNMEASURED, stamped
from bench.load.timing import Timer
from bench.load.transactions import Crowd, TransactionTimes, all_of, transact
from bench.load.watcher import Arrival, Watcher
from bench.results import Stall
from bench.systems.system import Peer

TOPIC = "stall"
PRODUCERS = 4
PAUSE_SECONDS = 0.04
SETTLE_SECONDS = 1.0
POINTS_MAX = 3_000


class Spans(NamedTuple):
    """Seconds before, while and after the transaction hangs."""

    before: float
    during: float
    after: float

    @property
    def total(self) -> float:
        """Seconds of all three."""
        return sum(self)


def measure(systems: Iterable[Peer], spans: Spans, progress: Callable[[str], None]) -> list[Stall]:
    """Each system, one after the other."""
    rows = []
    for peer in systems:
        progress(peer.about.name)
        rows.append(stall_of(peer, spans))
    return rows


def stall_of(peer: Peer, spans: Spans) -> Stall:
    """Producers that commit single messages, at a steady pace, where another's transaction hangs."""
    make_topic(peer.address, TOPIC, 1)
    crowd = Crowd(peer.address, TOPIC, PRODUCERS)
    hanging = latency_producer(peer.address, f"{TOPIC}-hanging")
    with Watcher(peer.address) as watcher:
        watcher.assign(TOPIC, 1)
        crowd.warm_up(watcher, TOPIC, 1, PRODUCERS)
        time.sleep(SETTLE_SECONDS)
        began = time.monotonic()
        sender = threading.Thread(target=keep_committing, args=(crowd, began + spans.total))
        sender.start()
        sleep_until(began + spans.before)
        opened = time.monotonic()
        hanging.begin_transaction()
        hanging.produce(TOPIC, stamped(UNMEASURED), partition=0)
        hanging.flush(10)
        sleep_until(began + spans.before + spans.during)
        closed = time.monotonic()
        hanging.commit_transaction(30)
        sender.join()
        arrivals = all_of(watcher, crowd.transactions)
    delete_topic(peer.address, TOPIC)
    return row_of(peer.about.name, arrivals, began, opened, closed)


def keep_committing(crowd: Crowd, until: float) -> None:
    """Each producer commits one message, pauses, and repeats."""
    unused = TransactionTimes()

    def repeat(producer: Producer) -> None:
        while time.monotonic() < until:
            begun = time.monotonic()
            transact(producer, TOPIC, 1, crowd.next_number(), unused)
            sleep_until(begun + PAUSE_SECONDS)

    crowd.each(PRODUCERS, repeat)


def sleep_until(moment: float) -> None:
    """Sleep until a moment of the monotonic clock, in seconds; not at all if it is past."""
    time.sleep(max(moment - time.monotonic(), 0.0))


def row_of(system: str, arrivals: list[Arrival], began: float, opened: float, closed: float) -> Stall:
    """The row of a system; arrivals are grouped by their send: before, during or after the hang."""
    timers = before, during, after = Timer(), Timer(), Timer()
    points = []
    for _, sent_ns, arrived_ns in arrivals:
        sent = sent_ns / 1e9
        latency = (arrived_ns - sent_ns) / 1e9
        timers[(sent >= opened) + (sent >= closed)].record(latency)
        points.append((sent - began, latency * 1000))
    points.sort()
    thinned = points[:: len(points) // POINTS_MAX + 1]
    histograms = before.histogram(), during.histogram(), after.histogram()
    return Stall(system, *histograms, opened - began, closed - began, thinned)
