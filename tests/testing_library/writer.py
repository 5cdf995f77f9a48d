"""A producer of one of three libraries that has one message in an open transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from faircopy.testing import Broker
from tests.clients import aiokafka_adapter, confluent_adapter, kafka_python_adapter
from tests.clients.adapter import Client, ClientFailed, Producer

LIBRARIES: list[Client] = [confluent_adapter, aiokafka_adapter, kafka_python_adapter]
each_library = pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)
VALUE = b"1"


@contextmanager
def open_transaction(
    library: Client, broker: Broker, topic: str, name: str | None = None
) -> Iterator[Producer]:
    """The producer; its transactional id is by default the topic's name."""
    producer = library.producer(broker.bootstrap_servers, transactional_id=name or topic)
    try:
        producer.init()
        producer.begin()
        producer.send(topic, VALUE)
        producer.flush()
        yield producer
    finally:
        producer.close()


class InBackground:
    """A call on a thread of its own; `result` is what it raised, or None."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._error: ClientFailed | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._call()
        except ClientFailed as error:
            self._error = error

    @property
    def is_under_way(self) -> bool:
        return self._thread.is_alive()

    def result(self) -> ClientFailed | None:
        self._thread.join()
        return self._error
