"""The requests of joint transactions, made by hand on one connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from faircopy.api.add_partitions_to_txn import SCHEMA as ADD_PARTITIONS_TO_TXN
from faircopy.api.end_joint_transaction import SCHEMA as END_JOINT_TRANSACTION
from faircopy.api.end_txn import SCHEMA as END_TXN
from faircopy.api.fetch.fetch import SCHEMA as FETCH
from faircopy.api.forget_transaction_group import SCHEMA as FORGET_TRANSACTION_GROUP
from faircopy.api.join_transaction import SCHEMA as JOIN_TRANSACTION
from faircopy.api.list_offsets import SCHEMA as LIST_OFFSETS
from faircopy.api.metadata import SCHEMA as METADATA
from faircopy.api.produce.produce import SCHEMA as PRODUCE
from faircopy.client.connection import BrokerConnection
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch, decode_records
from tests.broker_process import BrokerProcess

TOPIC = "joint"
PARTITIONS = 3


@dataclass
class Member:
    """A member of a joint group, which writes by ordinary requests."""

    connection: BrokerConnection
    transactional_id: str
    producer_id: int
    epoch: int
    sequences: dict[int, int] = field(default_factory=dict)

    def add(self, partition: int = 0) -> int:
        topics = {"topics": [{"name": TOPIC, "partitions": [partition]}]}
        answer = self.connection.ask(ADD_PARTITIONS_TO_TXN, 1, self.identity() | topics)
        return int(answer.results[0].partitions[0].error_code)

    def produce(self, value: bytes, partition: int = 0) -> int:
        sequence = self.sequences.get(partition, 0)
        batch = build_batch(
            [NewRecord(value)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        body = {"transactional_id": self.transactional_id, "acks": -1, "timeout_ms": 5_000}
        rows = [{"index": partition, "records": batch}]
        answer = self.connection.ask(
            PRODUCE, 7, body | {"topic_data": [{"name": TOPIC, "partition_data": rows}]}
        )
        code = int(answer.responses[0].partition_responses[0].error_code)
        if not code:
            self.sequences[partition] = sequence + 1
        return code

    def write(self, value: bytes, partition: int = 0) -> None:
        """Add a partition, and produce one message."""
        assert self.add(partition) == ErrorCode.NONE
        assert self.produce(value, partition) == ErrorCode.NONE

    def end(self, *, commit: bool) -> int:
        return int(self.connection.ask(END_TXN, 1, self.identity() | {"committed": commit}).error_code)

    def identity(self) -> dict[str, object]:
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }


@contextmanager
def broker_with_topic(directory: Path, *settings: str) -> Iterator[BrokerProcess]:
    """A broker in a process of its own, with a topic of several partitions."""
    with BrokerProcess(directory, f"topic.partitions={PARTITIONS}", *settings) as broker:
        with BrokerConnection(broker.address) as connection:
            make_topic(connection)
        yield broker


def make_topic(connection: BrokerConnection) -> None:
    connection.ask(METADATA, 9, {"topics": [{"name": TOPIC}], "allow_auto_topic_creation": True})


def ask_to_join(
    connection: BrokerConnection,
    group: str,
    run: str,
    key: int,
    member: str = "task",
    timeout_ms: int = 60_000,
) -> tuple[int, Member | None]:
    """The error, and the member; None if there is nothing to write."""
    body = {"group": group, "run": run, "key": key, "member": member, "timeout_ms": timeout_ms}
    answer = connection.ask(JOIN_TRANSACTION, 0, body)
    if answer.error_code or answer.is_committed:
        return int(answer.error_code), None
    joined = Member(connection, answer.transactional_id, answer.producer_id, answer.producer_epoch)
    return 0, joined


def join(connection: BrokerConnection, group: str, run: str, key: int, member: str = "task") -> Member:
    """A member that has something to write."""
    code, joined = ask_to_join(connection, group, run, key, member)
    assert code == ErrorCode.NONE
    assert joined is not None
    return joined


def end_joint(
    connection: BrokerConnection, group: str, run: str, key: int, *members: Member, commit: bool = True
) -> int:
    body = {"group": group, "run": run, "key": key, "committed": commit}
    producer_ids = [member.producer_id for member in members]
    return int(connection.ask(END_JOINT_TRANSACTION, 0, body | {"producer_ids": producer_ids}).error_code)


def forget_group(connection: BrokerConnection, group: str) -> int:
    return int(connection.ask(FORGET_TRANSACTION_GROUP, 0, {"group": group}).error_code)


def visible(connection: BrokerConnection, partition: int = 0) -> list[bytes]:
    """All values in a partition's log, once what is acked is visible (P8)."""
    asked = [{"partition_index": partition, "timestamp": -1}]
    end = connection.ask(LIST_OFFSETS, 5, {"topics": [{"name": TOPIC, "partitions": asked}]})
    end_offset = end.topics[0].partitions[0].offset
    values: list[bytes] = []
    while len(values) < end_offset:
        one = {"partition": partition, "fetch_offset": len(values), "partition_max_bytes": 1}
        body = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1}
        topics = {"topics": [{"topic": TOPIC, "partitions": [one]}]}
        records = connection.ask(FETCH, 11, body | topics).responses[0].partitions[0].records
        values += [record.value or b"" for record in decode_records(bytes(records))]
    return values


def visible_everywhere(broker: BrokerProcess) -> list[bytes]:
    """All values in the topic's partitions, one partition after the other."""
    with BrokerConnection(broker.address) as connection:
        return [value for number in range(PARTITIONS) for value in visible(connection, number)]
