"""What the tests do again and again: make topics, read all, close what was opened."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from faircopy.api.create_topics import SCHEMA as CREATE_TOPICS
from faircopy.api.delete_topics import SCHEMA as DELETE_TOPICS
from faircopy.client.connection import BrokerConnection
from tests.clients import adapter
from tests.clients.adapter import Client, ClientFailed, Consumer, Got, Place, Producer


def create_topic(address: str, topic: str, partitions: int = 1, **configs: str) -> None:
    """Make a topic; underscores in the names of settings stand for dots."""
    rows = [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]
    asked = {
        "name": topic,
        "num_partitions": partitions,
        "replication_factor": -1,
        "assignments": [],
        "configs": rows,
    }
    with BrokerConnection(address) as connection:
        answer = connection.ask(
            CREATE_TOPICS, 5, {"topics": [asked], "timeout_ms": 10_000, "validate_only": False}
        )
    assert answer.topics[0].error_code == 0, answer


def delete_topic(address: str, topic: str) -> None:
    """Delete a topic; it is gone when this returns."""
    with BrokerConnection(address) as connection:
        answer = connection.ask(DELETE_TOPICS, 5, {"topic_names": [topic], "timeout_ms": 10_000})
    assert answer.responses[0].error_code == 0, answer


class Member:
    """A member of a group, polled by a thread of its own as applications do it; collects what it gets."""

    def __init__(self, consumer: Consumer, topic: str) -> None:
        self.consumer = consumer
        self.found: list[Got] = []
        self.share: set[Place] = set()  # the partitions that it has
        self._tasks: queue.Queue[tuple[Callable[[], Any], Future[Any]] | None] = queue.Queue()
        consumer.subscribe([topic])
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                task = self._tasks.get_nowait()
            except queue.Empty:
                self.found += self.consumer.poll(0.02)
                self.share = self.consumer.assignment()
                continue
            if task is None:
                return
            task[1].set_result(task[0]())

    @property
    def values(self) -> list[bytes | None]:
        return [each.value for each in self.found]

    def has_found(self, messages: int) -> bool:
        """Whether so many messages have come, and no more."""
        return len(self.found) == messages

    def do(self, action: Callable[[], Any]) -> Any:
        """Run an action between two polls: clients are not made for two threads at a time."""
        done: Future[Any] = Future()
        self._tasks.put((action, done))
        return done.result(adapter.WAIT_SECONDS)

    def close(self) -> None:
        """Leave the group."""
        self._tasks.put(None)
        self._thread.join()
        self.consumer.close()


class Talk:
    """One client's producers and consumers, towards one broker."""

    def __init__(self, client: Client, address: str) -> None:
        self.client = client
        self.address = address
        self._opened: list[Producer | Consumer | Member] = []

    def __enter__(self) -> Talk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        for each in reversed(self._opened):
            # A test that failed says why itself.
            with contextlib.suppress(*((Exception,) if kind else ())):
                each.close()

    def producer(self, **settings: Any) -> Producer:
        producer = self.client.producer(self.address, **settings)
        self._opened.append(producer)
        return producer

    def transactional(self, transactional_id: str, **settings: Any) -> Producer:
        """A producer that has fenced its forerunners."""
        producer = self.producer(transactional_id=transactional_id, **settings)
        producer.init()
        return producer

    def consumer(self, **settings: Any) -> Consumer:
        consumer = self.client.consumer(self.address, **settings)
        self._opened.append(consumer)
        return consumer

    def member(self, topic: str, group: str, **settings: Any) -> Member:
        """A member of a group that reads a topic."""
        member = Member(self.client.consumer(self.address, group=group, **settings), topic)
        self._opened.append(member)
        return member

    def close(self, each: Producer | Consumer | Member) -> None:
        """Close one before the test is over."""
        self._opened.remove(each)
        each.close()

    def read(self, place: Place, count: int | None = None, **settings: Any) -> list[Got]:
        """Read a partition from its first message: `count` messages, or all up to its present end."""
        consumer = self.consumer(**settings)
        try:
            first = consumer.beginnings([place])[place]
            if count is None:
                count = consumer.ends([place])[place] - first
            consumer.assign({place: first})
            found = poll_until(consumer, count)
        finally:
            self.close(consumer)
        assert [each.offset for each in found] == list(range(first, first + len(found))), (
            "P3: offsets are contiguous"
        )
        return found

    def values(self, place: Place, count: int | None = None, **settings: Any) -> list[bytes | None]:
        return [each.value for each in self.read(place, count, **settings)]


def poll_until(consumer: Consumer, count: int) -> list[Got]:
    """Poll until there are `count` messages."""
    found: list[Got] = []
    deadline = time.monotonic() + adapter.WAIT_SECONDS
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} messages came"
        found += consumer.poll(0.1)
    return found


def commit_values(producer: Producer, place: Place, values: Iterable[bytes]) -> None:
    """One committed transaction with these messages."""
    producer.begin()
    for value in values:
        producer.send(place[0], value, partition=place[1])
    producer.commit()


def failure(action: Any) -> ClientFailed:
    """How an action failed; that it does is asserted."""
    try:
        action()
    except ClientFailed as error:
        return error
    raise AssertionError("this was to fail")
