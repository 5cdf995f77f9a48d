"""aiokafka, on an event loop of its own in another thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import IllegalOperation, KafkaError, ProducerFenced

from tests.clients import adapter
from tests.clients.adapter import REBALANCE_MS, SESSION_MS, ClientFailed, Consumer, Got, Headers, Place
from tests.clients.kafka_python_adapter import got

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}

name = "aiokafka"
compressions: tuple[str, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
strategies: tuple[str, ...] = tuple(ASSIGNORS)

FENCED_CODE = 90
T = TypeVar("T")


class LoopThread:
    """An event loop that runs from the first call on, until the process ends."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the loop and return its result. Raises ClientFailed for the library's errors."""
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, daemon=True).start()
        with translated():
            return asyncio.run_coroutine_threadsafe(
                asyncio.wait_for(work, 2 * adapter.WAIT_SECONDS), self._loop
            ).result()


LOOP = LoopThread()


@contextlib.contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        # Its ProducerFenced has no code of the protocol: it stands for both 47 and 90.
        code = FENCED_CODE if isinstance(error, ProducerFenced) else getattr(error, "errno", None) or -1
        raise ClientFailed(code, repr(error)) from error
    except (AssertionError, IllegalOperation) as error:
        # So it says that a producer is in no state to do what it is asked.
        raise ClientFailed(-1, repr(error)) from error


async def called(function: Callable[..., T], *arguments: Any) -> T:
    """The library's plain functions want to be called on its loop."""
    return function(*arguments)


class AiokafkaProducer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self._is_started = False
        self._sent: list[asyncio.Future[Any]] = []

        async def make() -> AIOKafkaProducer:
            return AIOKafkaProducer(**settings)

        self._producer = LOOP.run(make())
        if settings["transactional_id"] is None:
            self.init()

    def init(self) -> None:
        """The library initialises transactions when it starts."""
        LOOP.run(self._producer.start())

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = (),
        time_ms: int | None = None,
    ) -> None:
        sending = self._producer.send(topic, value, key, partition, time_ms, list(headers) or None)
        self._sent.append(LOOP.run(sending))

    def flush(self) -> list[int]:
        sent, self._sent = self._sent, []

        async def wait() -> list[int]:
            found = [await future for future in sent]
            # With acks=0 there is no metadata.
            return [each.offset if each is not None else -1 for each in found]

        return LOOP.run(wait())

    def begin(self) -> None:
        LOOP.run(self._producer.begin_transaction())

    def commit(self) -> None:
        LOOP.run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._forget_sent()
        LOOP.run(self._producer.abort_transaction())

    def _forget_sent(self) -> None:
        """Look at what failed, so that the loop does not complain that nobody did."""
        sent, self._sent = self._sent, []

        async def look() -> None:
            for future in sent:
                future.add_done_callback(lambda done: done.cancelled() or done.exception())

        LOOP.run(look())

    def send_offsets(self, consumer: Consumer, offsets: Mapping[Place, int]) -> None:
        assert isinstance(consumer, AiokafkaConsumer), "a producer and its consumer are of one library"
        rows = {TopicPartition(*place): offset for place, offset in offsets.items()}
        LOOP.run(self._producer.send_offsets_to_transaction(rows, consumer.group))

    def close(self) -> None:
        self._forget_sent()
        with contextlib.suppress(ClientFailed, TimeoutError):
            LOOP.run(asyncio.wait_for(self._producer.stop(), 2))


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # a class of a library without types
    """Tells of partitions that a consumer is given."""

    def __init__(self, when_assigned: Callable[[], None]) -> None:
        self._when_assigned = when_assigned

    def on_partitions_revoked(self, revoked: object) -> None:
        pass

    def on_partitions_assigned(self, assigned: object) -> None:
        self._when_assigned()


class AiokafkaConsumer:
    def __init__(self, group: str | None, settings: dict[str, Any]) -> None:
        self.group = group
        self._is_started = False

        async def make() -> AIOKafkaConsumer:
            return AIOKafkaConsumer(**settings)

        self._consumer = LOOP.run(make())

    def _start(self) -> None:
        if not self._is_started:
            self._is_started = True
            LOOP.run(self._consumer.start())

    def assign(self, offsets: Mapping[Place, int]) -> None:
        self._start()
        LOOP.run(called(self._consumer.assign, [TopicPartition(*place) for place in offsets]))
        for place, offset in offsets.items():
            LOOP.run(called(self._consumer.seek, TopicPartition(*place), offset))

    def subscribe(self, topics: Sequence[str], when_assigned: Callable[[], None] | None = None) -> None:
        listener = Listener(when_assigned) if when_assigned else None
        LOOP.run(called(self._consumer.subscribe, list(topics), None, listener))
        self._start()

    def poll(self, seconds: float) -> list[Got]:
        found = LOOP.run(self._consumer.getmany(timeout_ms=int(seconds * 1000)))
        return [got(record) for records in found.values() for record in records]

    def assignment(self) -> set[Place]:
        return {(each.topic, each.partition) for each in self._consumer.assignment()}

    def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        self._start()
        found = LOOP.run(self._consumer.end_offsets([TopicPartition(*place) for place in places]))
        return {(each.topic, each.partition): offset for each, offset in found.items()}

    def beginnings(self, places: Sequence[Place]) -> dict[Place, int]:
        self._start()
        found = LOOP.run(self._consumer.beginning_offsets([TopicPartition(*place) for place in places]))
        return {(each.topic, each.partition): offset for each, offset in found.items()}

    def at_times(self, times_ms: Mapping[Place, int]) -> dict[Place, int | None]:
        self._start()
        asked = {TopicPartition(*place): time_ms for place, time_ms in times_ms.items()}
        found = LOOP.run(self._consumer.offsets_for_times(asked))
        return {(at.topic, at.partition): each.offset if each else None for at, each in found.items()}

    def commit(self, offsets: Mapping[Place, int]) -> None:
        if not self.assignment():
            self.assign(offsets)  # it commits only for what it was given to read
        LOOP.run(self._consumer.commit({TopicPartition(*place): offset for place, offset in offsets.items()}))

    def committed(self, places: Sequence[Place]) -> dict[Place, int | None]:
        self._start()
        return {place: LOOP.run(self._consumer.committed(TopicPartition(*place))) for place in places}

    def close(self) -> None:
        LOOP.run(self._consumer.stop())


def producer(
    address: str,
    *,
    acks: int = -1,
    idempotent: bool = False,
    transactional_id: str | None = None,
    timeout_ms: int = 60_000,
    compression: str = "none",
    linger_ms: int = 0,
    max_bytes: int = 1_000_000,
) -> AiokafkaProducer:
    return AiokafkaProducer(
        {
            "bootstrap_servers": address,
            "acks": acks,
            "enable_idempotence": idempotent or transactional_id is not None,
            "transactional_id": transactional_id,
            "transaction_timeout_ms": timeout_ms,
            "compression_type": None if compression == "none" else compression,
            "linger_ms": linger_ms,
            "max_request_size": max_bytes,
            "max_batch_size": max_bytes,
            "retry_backoff_ms": 20,
        }
    )


def consumer(
    address: str,
    *,
    group: str | None = None,
    isolation: str = "read_committed",
    strategy: str = "range",
    instance_id: str | None = None,
    from_end: bool = False,
    session_ms: int = SESSION_MS,
) -> AiokafkaConsumer:
    return AiokafkaConsumer(
        group,
        {
            "bootstrap_servers": address,
            "group_id": group,
            "group_instance_id": instance_id,
            "isolation_level": isolation,
            "partition_assignment_strategy": (ASSIGNORS[strategy],),
            "auto_offset_reset": "latest" if from_end else "earliest",
            "enable_auto_commit": False,
            "session_timeout_ms": session_ms,
            "rebalance_timeout_ms": REBALANCE_MS,
            "heartbeat_interval_ms": 100,
            "fetch_max_wait_ms": 100,
            "retry_backoff_ms": 20,
            "metadata_max_age_ms": 1_000,
        },
    )
