"""confluent-kafka, on librdkafka."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tests.clients import adapter
from tests.clients.adapter import SESSION_MS, ClientFailed, Consumer, Got, Headers, Place

name = "confluent-kafka"
compressions: tuple[str, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
strategies: tuple[str, ...] = ("range", "roundrobin", "cooperative-sticky")

FENCED_CODE = 90


@contextlib.contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        raise failed(error.args[0]) from error


def failed(error: KafkaError) -> ClientFailed:
    code = FENCED_CODE if error.code() == KafkaError._FENCED else error.code()
    return ClientFailed(code, str(error), must_abort=error.txn_requires_abort())


class ConfluentProducer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self._producer = confluent_kafka.Producer(settings)
        self._offsets: list[int | None] = []
        self._failed: ClientFailed | None = None

    def _delivered(self, error: KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            self._failed = self._failed or failed(error)
        else:
            self._offsets.append(message.offset())

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
        more: dict[str, Any] = {} if partition is None else {"partition": partition}
        if time_ms is not None:
            more["timestamp"] = time_ms
        with translated():
            self._producer.produce(
                topic, value, key, headers=list(headers), on_delivery=self._delivered, **more
            )

    def flush(self) -> list[int | None]:
        try:
            with translated():
                left = self._producer.flush(adapter.WAIT_SECONDS)
        except SystemError:
            # It runs callbacks while it raises a fatal error, which Python does not allow: ask it again.
            self.begin()
            raise
        offsets, self._offsets = self._offsets, []
        error, self._failed = self._failed, None
        if error is not None:
            raise error
        assert not left, f"{left} messages are not delivered"
        return offsets

    def init(self) -> None:
        with translated():
            self._producer.init_transactions(adapter.WAIT_SECONDS)

    def begin(self) -> None:
        with translated():
            self._producer.begin_transaction()

    def commit(self) -> None:
        with translated():
            self._producer.commit_transaction(adapter.WAIT_SECONDS)

    def abort(self) -> None:
        self._failed = None
        with translated():
            self._producer.abort_transaction(adapter.WAIT_SECONDS)
        self._failed = None

    def send_offsets(self, consumer: Consumer, offsets: Mapping[Place, int]) -> None:
        assert isinstance(consumer, ConfluentConsumer), "a producer and its consumer are of one library"
        with translated():
            self._producer.send_offsets_to_transaction(
                [TopicPartition(*place, offset) for place, offset in offsets.items()],
                consumer.consumer.consumer_group_metadata(),
                adapter.WAIT_SECONDS,
            )

    def close(self) -> None:
        with contextlib.suppress(KafkaException, SystemError):
            self._producer.purge()
            self._producer.flush(1)


class ConfluentConsumer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.consumer = confluent_kafka.Consumer(settings)

    def assign(self, offsets: Mapping[Place, int]) -> None:
        self.consumer.assign([TopicPartition(*place, offset) for place, offset in offsets.items()])

    def subscribe(self, topics: Sequence[str], when_assigned: Callable[[], None] | None = None) -> None:
        if when_assigned is None:
            self.consumer.subscribe(list(topics))
        else:
            self.consumer.subscribe(list(topics), on_assign=lambda *_: when_assigned())

    def poll(self, seconds: float) -> list[Got]:
        with translated():
            first = self.consumer.poll(seconds)
            found = [first] if first is not None else []
            found += self.consumer.consume(10_000, 0)
        for message in found:
            error = message.error()
            if error is not None:
                raise failed(error)
        return [self._got(message) for message in found]

    def _got(self, message: Any) -> Got:
        kind, time_ms = message.timestamp()
        return Got(
            message.topic(),
            message.partition(),
            message.offset(),
            message.key(),
            message.value(),
            tuple(message.headers() or ()),
            time_ms,
            kind - 1,
        )

    def assignment(self) -> set[Place]:
        return {(each.topic, each.partition) for each in self.consumer.assignment()}

    def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        with translated():
            return {
                p: self.consumer.get_watermark_offsets(TopicPartition(*p), adapter.WAIT_SECONDS)[1]
                for p in places
            }

    def beginnings(self, places: Sequence[Place]) -> dict[Place, int]:
        with translated():
            return {
                p: self.consumer.get_watermark_offsets(TopicPartition(*p), adapter.WAIT_SECONDS)[0]
                for p in places
            }

    def at_times(self, times_ms: Mapping[Place, int]) -> dict[Place, int | None]:
        asked = [TopicPartition(*place, time_ms) for place, time_ms in times_ms.items()]
        with translated():
            found = self.consumer.offsets_for_times(asked, adapter.WAIT_SECONDS)
        return {(each.topic, each.partition): each.offset if each.offset >= 0 else None for each in found}

    def commit(self, offsets: Mapping[Place, int]) -> None:
        with translated():
            committed = self.consumer.commit(
                offsets=[TopicPartition(*place, offset) for place, offset in offsets.items()],
                asynchronous=False,
            )
        for each in committed:
            if each.error is not None:
                raise failed(each.error)

    def committed(self, places: Sequence[Place]) -> dict[Place, int | None]:
        with translated():
            found = self.consumer.committed(
                [TopicPartition(*place) for place in places], adapter.WAIT_SECONDS
            )
        return {(each.topic, each.partition): each.offset if each.offset >= 0 else None for each in found}

    def close(self) -> None:
        self.consumer.close()


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
) -> ConfluentProducer:
    settings: dict[str, Any] = {
        "bootstrap.servers": address,
        "acks": acks,
        "compression.type": compression,
        "linger.ms": linger_ms,
        "message.max.bytes": max_bytes,
        "enable.idempotence": idempotent,
        "retry.backoff.ms": 20,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 100,
        "log_level": 0,
    }
    if transactional_id is not None:
        settings |= {"transactional.id": transactional_id, "transaction.timeout.ms": timeout_ms}
        settings |= {
            "enable.idempotence": True,
            "message.timeout.ms": min(timeout_ms, int(adapter.WAIT_SECONDS * 1000)),
        }
    return ConfluentProducer(settings)


def consumer(
    address: str,
    *,
    group: str | None = None,
    isolation: str = "read_committed",
    strategy: str = "range",
    instance_id: str | None = None,
    from_end: bool = False,
    session_ms: int = SESSION_MS,
) -> ConfluentConsumer:
    settings: dict[str, Any] = {
        "bootstrap.servers": address,
        "group.id": group or "none",
        "isolation.level": isolation,
        "partition.assignment.strategy": strategy,
        "auto.offset.reset": "latest" if from_end else "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": session_ms,
        "heartbeat.interval.ms": 100,
        "fetch.wait.max.ms": 100,
        "fetch.error.backoff.ms": 20,
        "retry.backoff.ms": 20,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 100,
        "topic.metadata.refresh.interval.ms": 1_000,
        "log_level": 0,
    }
    if instance_id is not None:
        settings["group.instance.id"] = instance_id
    return ConfluentConsumer(settings)
