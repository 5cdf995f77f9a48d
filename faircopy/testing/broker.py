"""A broker for tests."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from faircopy.testing.child import BrokerEnded, EphemeralProcess
from faircopy.testing.client_settings import WITH_DOTS, WITH_UNDERSCORES, ClientSettings
from faircopy.testing.faults import Faults

if TYPE_CHECKING:
    from faircopy.client.blocking import BlockingClient
    from faircopy.wire.records import Record

UNHARMED_CLIENT = "faircopy-testing"
"""The client id of requests that are not counted, and to which no fault happens."""


class Broker(Faults):
    """A broker in a process of its own, in a temporary directory and on a free port. Use it as a context
    manager.

    If a fault kills it, it comes back at once at the same address, with all that it has acknowledged.
    """

    def __init__(self, *, settings: Mapping[str, Any] | None = None) -> None:
        """`settings` are those of `faircopy settings`, such as {"topic.partitions": 4}."""
        self._arguments = [
            argument for key, value in (settings or {}).items() for argument in ("--set", setting(key, value))
        ]
        self._process: EphemeralProcess | None = None

    def __enter__(self) -> Broker:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Start it for the first time, and return when it accepts clients. Raises CannotStart."""
        if self._process is None:
            self._process = EphemeralProcess(self._arguments)

    def close(self) -> None:
        """End it, and remove its data."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def ask(self, order: str, **document: Any) -> Any:
        """Have an order carried out. Raises OrderRefused, BrokerEnded."""
        return self._there.ask(order, **document)

    @property
    def _there(self) -> EphemeralProcess:
        if self._process is None:
            raise BrokerEnded("the broker is not open: use it in a `with` statement, or call `open`")
        return self._process

    # -- where it is -----------------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """Its address, HOST:PORT, for clients."""
        return str(self._there.told["bootstrap_servers"])

    @property
    def data_directory(self) -> str:
        """The directory of its data, which is removed in the end."""
        return str(self._there.told["data_dir"])

    @property
    def log(self) -> str:
        """What it has logged until now, in all its lives."""
        return self._there.log

    @property
    def confluent_kafka(self) -> ClientSettings:
        """Settings for confluent-kafka, and all else on librdkafka."""
        return ClientSettings(WITH_DOTS, self.bootstrap_servers)

    @property
    def aiokafka(self) -> ClientSettings:
        """Settings for aiokafka."""
        return ClientSettings(WITH_UNDERSCORES, self.bootstrap_servers)

    @property
    def kafka_python(self) -> ClientSettings:
        """Settings for kafka-python."""
        return ClientSettings(WITH_UNDERSCORES, self.bootstrap_servers)

    # -- what is in it ---------------------------------------------------------------------------------------

    def create_topic(
        self, name: str | None = None, *, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> str:
        """Create a topic, and return its name; by default one that nothing else has. Raises OrderRefused."""
        name = name or f"topic-{uuid.uuid4().hex[:12]}"
        self.ask("create_topic", name=name, partitions=partitions, configs=dict(configs or {}))
        return name

    def read(self, topic: str) -> list[Record]:
        """All that is committed in a topic, partition by partition."""
        with self._client() as client:
            partitions = [(topic, number) for number in range(client.partitions_of(topic))]
            ranges = client.cut(partitions).items()
            return [
                record
                for (_, partition), (start, end) in ranges
                for record in client.read(topic, partition, start, end)
            ]

    def values(self, topic: str) -> list[bytes | None]:
        """The values of all that is committed in a topic, partition by partition."""
        return [record.value for record in self.read(topic)]

    def _client(self) -> BlockingClient:
        # Most of its import time is asyncio's, and many tests read nothing by it.
        from faircopy.client.blocking import BlockingClient

        return BlockingClient(self.bootstrap_servers, client_id=UNHARMED_CLIENT)


def setting(key: str, value: Any) -> str:
    """A setting as `--set` takes it."""
    return f"{key}={str(value).lower() if isinstance(value, bool) else value}"
