"""Several brokers that keep the same messages: their transactions and plain messages, and what these cost."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from bench.load.clients import delete_topic, make_topic, throughput_producer
from bench.load.transactions import Crowd, Load, TransactionTimes
from bench.load.watcher import Watcher
from bench.measures.latency import Cell, PlainTimes, measure_plain
from bench.measures.throughput import WARM_UP_SECONDS, send
from bench.results import SetMessages, SetTransactions
from bench.systems.system import Served, cpu_seconds, peak_memory_bytes

TOPIC, MESSAGES_TOPIC = "sets", "sets-messages"
PARTITIONS = 4
MESSAGE_BYTES = 1 << 10
GB = 1e9

Cpu = dict[str, float]
Row = SetTransactions | SetMessages
Progress = Callable[[str], None]


class Work(NamedTuple):
    """Each cell, plain messages at full speed and one at a time, for `seconds` each in each round; at full
    speed no more than `bytes_max`.
    """

    cells: list[Cell]
    seconds: float
    bytes_max: int


class Taken:
    """The results of one system over all rounds."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.times = {cell: TransactionTimes() for cell in cells}
        self.cpu_ms: dict[Cell, list[float]] = {cell: [] for cell in cells}
        self.plain = PlainTimes()
        self.produced_bytes_per_second: list[float] = []
        self.cpu_seconds_per_gb: dict[str, list[float]] = {}


def measure(systems: Sequence[Served], work: Work, rounds: int, progress: Progress) -> list[Row]:
    """The rows of systems that run; they take turns in each round, each time in another order."""
    taken = [Taken(work.cells) for _ in systems]
    for number in range(rounds):
        for place in range(len(systems)):
            which = (place + number) % len(systems)
            progress(f"round {number + 1} of {rounds}: {systems[which].about.name}")
            turn(systems[which], work, taken[which])
    return [row for each in zip(systems, taken, strict=True) for row in rows_of(*each, rounds)]


def warm_up(system: Served, work: Work) -> None:
    """Like a turn, but the results are discarded."""
    turn(system, work, Taken(work.cells))


def turn(system: Served, work: Work, taken: Taken) -> None:
    """One system's turn in one round, on topics of its own."""
    make_topic(system.address, TOPIC, max(cell.partitions for cell in work.cells))
    crowd = Crowd(system.address, TOPIC, max(cell.producers for cell in work.cells))
    with Watcher(system.address) as watcher:
        for cell in work.cells:
            run_cell(system, crowd, watcher, cell, work.seconds, taken)
        measure_plain(system.address, watcher, TOPIC, work.seconds, taken.plain)
    delete_topic(system.address, TOPIC)
    produce(system, work, taken)


def run_cell(
    system: Served, crowd: Crowd, watcher: Watcher, cell: Cell, seconds: float, taken: Taken
) -> None:
    """One cell, with the CPU time of its transactions alone."""
    times, cpu = taken.times[cell], Cpu()
    load = Load(TOPIC, cell.partitions, cell.producers, cell.pause_ms / 1000)
    before = times.count
    crowd.run(watcher, load, seconds, cell.least, times, cpu_into(cpu, system))
    taken.cpu_ms[cell].append(1000 * sum(cpu.values()) / (times.count - before))


@contextlib.contextmanager
def cpu_into(cpu: Cpu, system: Served) -> Iterator[None]:
    """Note how many seconds of CPU each process has used while this was open."""
    before = {role: cpu_seconds(pid) for role, pid in system.processes.items()}
    yield
    cpu |= {role: cpu_seconds(pid) - before[role] for role, pid in system.processes.items()}


def produce(system: Served, work: Work, taken: Taken) -> None:
    """One producer at full speed, to one partition after the other."""
    make_topic(system.address, MESSAGES_TOPIC, PARTITIONS)
    producer = throughput_producer(system.address)
    value, cpu = os.urandom(MESSAGE_BYTES), Cpu()

    def send_for(seconds: float, bytes_max: int) -> int:
        until, most = time.monotonic() + seconds, bytes_max // MESSAGE_BYTES
        sent = send(producer, value, until, most, MESSAGES_TOPIC, PARTITIONS)
        producer.flush(60)
        return sent * MESSAGE_BYTES

    send_for(WARM_UP_SECONDS, work.bytes_max // 10)
    with cpu_into(cpu, system):
        began = time.monotonic()
        sent_bytes = send_for(work.seconds, work.bytes_max)
        elapsed = time.monotonic() - began
    taken.produced_bytes_per_second.append(sent_bytes / elapsed)
    for role, seconds in cpu.items():
        taken.cpu_seconds_per_gb.setdefault(role, []).append(seconds / sent_bytes * GB)
    delete_topic(system.address, MESSAGES_TOPIC)


def rows_of(system: Served, taken: Taken, rounds: int) -> Iterator[Row]:
    """The rows of one system, while it still runs: its peak of memory is asked for here."""
    name = system.about.name
    for cell, times in taken.times.items():
        place = cell.partitions, cell.producers, cell.pause_ms
        yield SetTransactions(
            name, *place, rounds, times.count, times.per_second, times.commit_to_ack.histogram(),
            times.flushed_commit_to_ack.histogram(), taken.cpu_ms[cell],
        )  # fmt: skip
    memory = {role: peak_memory_bytes(pid) for role, pid in system.processes.items()}
    yield SetMessages(
        name, PARTITIONS, MESSAGE_BYTES, taken.produced_bytes_per_second, taken.cpu_seconds_per_gb, memory,
        taken.plain.send_to_ack.histogram(),
    )  # fmt: skip
