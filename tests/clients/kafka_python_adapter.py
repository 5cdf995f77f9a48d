"""kafka-python 3."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.clients import adapter
from tests.clients.adapter import SESSION_MS, ClientFailed, Consumer, Got, Headers, Place

with warnings.catch_warnings():
    # It reads its schemas with a function of importlib that Python 3.11 deprecates.
    warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
    from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.errors import KafkaError
    from kafka.structs import OffsetAndMetadata

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}

name = "kafka-python"
compressions: tuple[str, ...] = ("none", "gzip")  # the others need packages that it does not bring along
strategies: tuple[str, ...] = tuple(ASSIGNORS)

CLIENT_SETTINGS: dict[str, Any] = {
    "retry_backoff_ms": 20,
    "reconnect_backoff_ms": 20,
    "reconnect_backoff_max_ms": 100,
}


@contextlib.contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        raise failed(error) from error


def failed(error: BaseException) -> ClientFailed:
    """What failed; the code of an error that the library wraps stands in its text only."""
    wrapped = re.search(r"\[Error (\d+)\]", str(error))
    code = int(wrapped[1]) if wrapped else getattr(error, "errno", None) or -1
    return ClientFailed(code, repr(error))


class KafkaPythonProducer:
    def __init__(self, settings: dict[str, Any]) -> None:
        with translated():
            self._producer = KafkaProducer(**settings)
        self._sent: list[Any] = []

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
        with translated():
            self._sent.append(self._producer.send(topic, value, key, list(headers), partition, time_ms))

    def flush(self) -> list[int]:
        sent, self._sent = self._sent, []
        with translated():
            return [future.get(adapter.WAIT_SECONDS).offset for future in sent]

    def init(self) -> None:
        with translated():
            self._producer.init_transactions()

    def begin(self) -> None:
        with translated():
            self._producer.begin_transaction()

    def commit(self) -> None:
        with translated():
            self._producer.commit_transaction()

    def abort(self) -> None:
        self._sent = []
        with translated():
            self._producer.abort_transaction()

    def send_offsets(self, consumer: Consumer, offsets: Mapping[Place, int]) -> None:
        assert isinstance(consumer, KafkaPythonConsumer), "a producer and its consumer are of one library"
        rows = {
            TopicPartition(*place): OffsetAndMetadata(offset, "", -1) for place, offset in offsets.items()
        }
        with translated():
            self._producer.send_offsets_to_transaction(rows, consumer.consumer.group_metadata())

    def close(self) -> None:
        self._producer.close(timeout=0)


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # a class of a library without types
    """Tells of partitions that a consumer is given."""

    def __init__(self, when_assigned: Callable[[], None]) -> None:
        self._when_assigned = when_assigned

    def on_partitions_revoked(self, revoked: object) -> None:
        pass

    def on_partitions_assigned(self, assigned: object) -> None:
        self._when_assigned()


class KafkaPythonConsumer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.consumer = KafkaConsumer(**settings)

    def assign(self, offsets: Mapping[Place, int]) -> None:
        self.consumer.assign([TopicPartition(*place) for place in offsets])
        for place, offset in offsets.items():
            self.consumer.seek(TopicPartition(*place), offset)

    def subscribe(self, topics: Sequence[str], when_assigned: Callable[[], None] | None = None) -> None:
        self.consumer.subscribe(list(topics), listener=Listener(when_assigned) if when_assigned else None)
        # If it learns of the partitions after it has joined, it joins again. If a call of poll ends between
        # the answers to JoinGroup and SyncGroup then, it drops the latter, and sends no heartbeats any more
        # (3.0.12).
        with contextlib.suppress(KafkaError):  # as it will ask again, if the broker is down now
            for topic in topics:
                self.consumer.partitions_for_topic(topic)

    def poll(self, seconds: float) -> list[Got]:
        with translated():
            found = self.consumer.poll(int(seconds * 1000))
        return [got(record) for records in found.values() for record in records]

    def assignment(self) -> set[Place]:
        return {(each.topic, each.partition) for each in self.consumer.assignment()}

    def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        with translated():
            return plain(self.consumer.end_offsets([TopicPartition(*place) for place in places]))

    def beginnings(self, places: Sequence[Place]) -> dict[Place, int]:
        with translated():
            return plain(self.consumer.beginning_offsets([TopicPartition(*place) for place in places]))

    def at_times(self, times_ms: Mapping[Place, int]) -> dict[Place, int | None]:
        with translated():
            found = self.consumer.offsets_for_times(
                {TopicPartition(*p): time_ms for p, time_ms in times_ms.items()}
            )
        return {(at.topic, at.partition): each.offset if each else None for at, each in found.items()}

    def commit(self, offsets: Mapping[Place, int]) -> None:
        with translated():
            self.consumer.commit(
                {TopicPartition(*p): OffsetAndMetadata(o, "", -1) for p, o in offsets.items()}
            )

    def committed(self, places: Sequence[Place]) -> dict[Place, int | None]:
        with translated():
            return {place: self.consumer.committed(TopicPartition(*place)) for place in places}

    def close(self) -> None:
        self.consumer.close(autocommit=False)


def got(record: Any) -> Got:
    """A record of this library, or of its sister aiokafka."""
    return Got(
        record.topic,
        record.partition,
        record.offset,
        record.key,
        record.value,
        tuple((key, value) for key, value in record.headers),
        record.timestamp,
        record.timestamp_type,
    )


def plain(offsets: Mapping[Any, int]) -> dict[Place, int]:
    return {(each.topic, each.partition): offset for each, offset in offsets.items()}


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
) -> KafkaPythonProducer:
    return KafkaPythonProducer(
        CLIENT_SETTINGS
        | {
            "bootstrap_servers": address,
            "acks": acks,
            "enable_idempotence": idempotent or transactional_id is not None,
            "transactional_id": transactional_id,
            "transaction_timeout_ms": timeout_ms,
            "compression_type": None if compression == "none" else compression,
            "linger_ms": linger_ms,
            "max_request_size": max_bytes,
            "max_block_ms": int(adapter.WAIT_SECONDS * 1000),
            "metrics_enabled": False,
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
) -> KafkaPythonConsumer:
    return KafkaPythonConsumer(
        CLIENT_SETTINGS
        | {
            "bootstrap_servers": address,
            "group_id": group,
            "group_instance_id": instance_id,
            "isolation_level": isolation,
            "partition_assignment_strategy": (ASSIGNORS[strategy],),
            "auto_offset_reset": "latest" if from_end else "earliest",
            "enable_auto_commit": False,
            "session_timeout_ms": session_ms,
            "heartbeat_interval_ms": 100,
            "fetch_max_wait_ms": 100,
            "metadata_max_age_ms": 1_000,
            "metrics_enabled": False,
        }
    )
