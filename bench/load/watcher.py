"""A consumer in a process of its own that waits in a fetch, and notes when each message arrives."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection
from typing import NamedTuple

import numpy
from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from bench.load.clients import committed_consumer
from bench.load.message import STAMP, UNMEASURED

POLL_SECONDS = 0.02


class Arrival(NamedTuple):
    """One measured message: nanoseconds of the monotonic clock."""

    transaction: int
    sent_ns: int
    arrived_ns: int


class Watcher:
    """Sees committed messages only. Watches some partitions of a topic at a time."""

    def __init__(self, address: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=watch, args=(address, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def assign(self, topic: str, partitions: int) -> None:
        """Watch the first partitions of a topic, from their ends on."""
        self._ours.send(("assign", topic, partitions))

    def is_awake(self) -> bool:
        """Whether a message has arrived from every partition since `assign`: from now on none is missed."""
        self._ours.send(("awake",))
        return bool(self._ours.recv())

    def take(self, expected: int, wait_seconds: float) -> list[Arrival]:
        """The measured messages since `assign`, when `expected` have arrived or the time is up."""
        self._ours.send(("take", expected, wait_seconds))
        return [Arrival._make(row) for row in self._ours.recv().tolist()]

    def close(self) -> None:
        """End the process."""
        self._ours.send(("close",))
        self._process.join(10)
        self._process.kill()
        self._process.join()

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Watch:
    """The state of the process."""

    def __init__(self, address: str) -> None:
        self._consumer: Consumer = committed_consumer(address, {"fetch.wait.max.ms": 500})
        self._rows: list[tuple[int, int, int]] = []
        self._silent: set[int] = set()

    def assign(self, topic: str, partitions: int) -> None:
        """Read the first partitions of a topic from their ends on, and forget what came before."""
        self._rows, self._silent = [], set(range(partitions))
        self._consumer.assign([TopicPartition(topic, number, OFFSET_END) for number in range(partitions)])

    def awake(self) -> bool:
        """Whether a message has come from each partition since `assign`."""
        return not self._silent

    def take(self, expected: int, wait_seconds: float) -> numpy.ndarray:
        """Rows of (transaction, sent_ns, arrived_ns), when `expected` came or `wait_seconds` are over."""
        deadline = time.monotonic() + wait_seconds
        while len(self._rows) < expected and time.monotonic() < deadline:
            self.poll()
        return numpy.array(self._rows, dtype=numpy.int64).reshape(-1, 3)

    def poll(self) -> None:
        """Take the messages that arrive within a moment."""
        message = self._consumer.poll(POLL_SECONDS)
        arrived_ns = time.monotonic_ns()
        if message is None or message.error() is not None:
            return
        sent_ns, transaction = STAMP.unpack_from(message.value() or b"")
        self._silent.discard(message.partition())
        if transaction != UNMEASURED:
            self._rows.append((transaction, sent_ns, arrived_ns))

    def close(self) -> None:
        self._consumer.close()


def watch(address: str, commands: Connection) -> None:
    """The process: polls, and carries out commands."""
    state = Watch(address)
    try:
        while True:
            while not commands.poll():
                state.poll()
            name, *arguments = commands.recv()
            answer = getattr(state, name)(*arguments)
            if name == "close":
                return
            if name in ("awake", "take"):
                commands.send(answer)
    except EOFError:
        state.close()
