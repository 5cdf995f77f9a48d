"""The application in three libraries for Python."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import Coroutine
from typing import Any

import confluent_kafka
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import KafkaError, KafkaException

from tests.clients.errors.application import Error

with warnings.catch_warnings():
    # It reads its schemas with a function of importlib that Python 3.11 deprecates.
    warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
    from kafka import KafkaProducer
    from kafka.errors import KafkaError as KafkaPythonError

CLOSE_SECONDS = 1.0


class ConfluentKafka:
    """confluent-kafka, on librdkafka."""

    library = "confluent-kafka"

    def __init__(self) -> None:
        self._producer: Any = None
        self._patience = 0.0
        self._undelivered: list[KafkaError] = []

    def do(self, step: str, **arguments: Any) -> Error | None:
        """Do a step."""
        try:
            getattr(self, f"_{step}")(**arguments)
        except KafkaException as raised:
            return told_by_librdkafka(raised.args[0])
        return None

    def _open(self, servers: str, transactional_id: str, patience_ms: int) -> None:
        self._patience = patience_ms / 1000
        settings = {"bootstrap.servers": servers, "transactional.id": transactional_id}
        self._producer = confluent_kafka.Producer({**settings, "reconnect.backoff.max.ms": 500})
        self._producer.init_transactions(60)

    def _begin(self) -> None:
        self._producer.begin_transaction()

    def _send(self, topic: str, value: str) -> None:
        self._undelivered = []
        self._producer.produce(topic, value.encode(), on_delivery=self._delivered)
        with contextlib.suppress(SystemError):  # it runs callbacks while it raises a fatal error
            self._producer.flush(self._patience)
        if self._undelivered:
            raise KafkaException(self._undelivered[0])

    def _delivered(self, error: KafkaError | None, message: object) -> None:
        if error is not None:
            self._undelivered.append(error)

    def _commit(self) -> None:
        self._producer.commit_transaction(self._patience)

    def _abort(self) -> None:
        self._producer.abort_transaction(60)

    def _close(self) -> None:
        self._producer = None


def told_by_librdkafka(error: KafkaError) -> Error:
    """What an error of librdkafka says."""
    flags = {
        "retriable": error.retriable(),
        "txn_requires_abort": error.txn_requires_abort(),
        "fatal": error.fatal(),
    }
    return Error(f"KafkaException: {error.name()}", tuple(name for name, is_set in flags.items() if is_set))


class Aiokafka:
    """aiokafka, which has no patience of its own: the application brings asyncio's."""

    library = "aiokafka"

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._producer: Any = None
        self._patience = 0.0

    def do(self, step: str, **arguments: Any) -> Error | None:
        """Do a step."""
        try:
            self._loop.run_until_complete(self._step(step, arguments))
        except (AiokafkaError, TimeoutError) as raised:
            return Error(type(raised).__name__, ("retriable",) if getattr(raised, "retriable", False) else ())
        return None

    async def _step(self, step: str, arguments: dict[str, Any]) -> None:
        if step == "open":
            await self._open(**arguments)
        elif step == "close":
            with contextlib.suppress(AiokafkaError, TimeoutError):
                await asyncio.wait_for(self._producer.stop(), CLOSE_SECONDS)
        else:
            await asyncio.wait_for(self._call(step, arguments), self._patience)

    def _call(self, step: str, arguments: dict[str, Any]) -> Coroutine[Any, Any, Any]:
        call: Coroutine[Any, Any, Any]
        if step == "send":
            call = self._producer.send_and_wait(arguments["topic"], arguments["value"].encode())
        else:
            call = getattr(self._producer, f"{step}_transaction")()
        return call

    async def _open(self, servers: str, transactional_id: str, patience_ms: int) -> None:
        self._patience = patience_ms / 1000
        self._producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id=transactional_id)
        await self._producer.start()

    def end(self) -> None:
        """Close the loop."""
        self._loop.close()


class KafkaPython:
    """kafka-python, whose patience is max_block_ms."""

    library = "kafka-python"

    def __init__(self) -> None:
        self._producer: Any = None
        self._patience = 0.0

    def do(self, step: str, **arguments: Any) -> Error | None:
        """Do a step."""
        try:
            getattr(self, f"_{step}")(**arguments)
        except KafkaPythonError as raised:
            return Error(type(raised).__name__, ("retriable",) if raised.retriable else ())
        return None

    def _open(self, servers: str, transactional_id: str, patience_ms: int) -> None:
        self._patience = patience_ms / 1000
        self._producer = KafkaProducer(
            bootstrap_servers=servers, transactional_id=transactional_id, max_block_ms=patience_ms,
            request_timeout_ms=min(patience_ms, 30_000), reconnect_backoff_max_ms=500,
        )  # fmt: skip
        self._producer.init_transactions()

    def _begin(self) -> None:
        self._producer.begin_transaction()

    def _send(self, topic: str, value: str) -> None:
        self._producer.send(topic, value.encode()).get(self._patience)

    def _commit(self) -> None:
        self._producer.commit_transaction()

    def _abort(self) -> None:
        self._producer.abort_transaction()

    def _close(self) -> None:
        self._producer.close(timeout=0)
