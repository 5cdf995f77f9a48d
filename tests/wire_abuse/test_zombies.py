"""Old instances, late requests and repeated ones, by hand: what a real client can't be made to do when asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faircopy.client.connection import Connection
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import Message, build_batch, decode_records
from tests.broker_process import BrokerProcess, eventually

TOPIC = "haunted"


class Instance:
    """A transactional producer, one request at a time, on any of its connections."""

    def __init__(self, connection: Connection, transactional_id: str) -> None:
        self.connection = connection
        self._id = transactional_id
        answer = connection.ask(
            ApiKey.INIT_PRODUCER_ID, 2, {"transactional_id": transactional_id, "transaction_timeout_ms": 60_000}
        )
        assert answer.error_code == ErrorCode.NONE
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequence = 0

    def _identity(self) -> dict[str, object]:
        return {"transactional_id": self._id, "producer_id": self.producer_id, "producer_epoch": self.epoch}

    def add(self, version: int = 1) -> int:
        topics = {"topics": [{"name": TOPIC, "partitions": [0]}]}
        answer = self.connection.ask(ApiKey.ADD_PARTITIONS_TO_TXN, version, self._identity() | topics)
        return int(answer.results[0].partitions[0].error_code)

    def produce(self, value: bytes, sequence: int | None = None) -> int:
        """Produce one message; a repeated one if its sequence is given."""
        batch = build_batch(
            [Message(value)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence if sequence is None else sequence,
            transactional=True,
        )
        partitions = [{"index": 0, "records": batch}]
        body = {"transactional_id": self._id, "acks": -1, "timeout_ms": 5_000}
        topics = {"topic_data": [{"name": TOPIC, "partition_data": partitions}]}
        answer = self.connection.ask(ApiKey.PRODUCE, 7, body | topics)
        code = int(answer.responses[0].partition_responses[0].error_code)
        if sequence is None and not code:
            self.sequence += 1
        return code

    def end(self, *, commit: bool = True, on: Connection | None = None, version: int = 1) -> int:
        body = self._identity() | {"committed": commit}
        return int((on or self.connection).ask(ApiKey.END_TXN, version, body).error_code)


@pytest.fixture
def connections(broker: BrokerProcess) -> Iterator[list[Connection]]:
    """Three connections, in the order in which they were made."""
    made = [Connection(broker.address) for _ in range(3)]
    made[0].ask(ApiKey.METADATA, 9, {"topics": [{"name": TOPIC}], "allow_auto_topic_creation": True})
    yield made
    for connection in made:
        connection.__exit__()


def visible(connection: Connection) -> list[bytes]:
    """All values in the topic's log, once what is acked is visible (P8)."""
    end = connection.ask(
        ApiKey.LIST_OFFSETS, 5, {"topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "timestamp": -1}]}]}
    )
    end_offset = end.topics[0].partitions[0].offset
    values: list[bytes] = []
    while len(values) < end_offset:
        asked = {"partition": 0, "fetch_offset": len(values), "partition_max_bytes": 1}
        body = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1, "topics": [{"topic": TOPIC, "partitions": [asked]}]}
        records = connection.ask(ApiKey.FETCH, 11, body).responses[0].partitions[0].records
        values += [record.value or b"" for record in decode_records(bytes(records))]
    return values


def test_a_late_end_never_ends_a_later_transaction(connections: list[Connection]) -> None:
    """KAFKA-17754: an EndTxn that was stuck on an old connection comes when the next transaction is open."""
    old, new, _ = connections
    producer = Instance(old, "late/1")
    assert producer.add() == ErrorCode.NONE
    assert producer.produce(b"late: first") == ErrorCode.NONE
    # The client gives up the old connection, and repeats its request on the new one.
    assert producer.end(on=new) == ErrorCode.NONE
    producer.connection = new
    assert producer.add() == ErrorCode.NONE
    assert producer.produce(b"late: half") == ErrorCode.NONE
    for commit in (True, False):
        assert producer.end(commit=commit, on=old) == ErrorCode.INVALID_TXN_STATE
    assert b"late: half" not in visible(new)
    assert producer.produce(b"late: other half") == ErrorCode.NONE
    assert producer.end() == ErrorCode.NONE
    assert visible(new)[-3:] == [b"late: first", b"late: half", b"late: other half"]


def test_a_repeated_end_is_answered_as_the_first(connections: list[Connection]) -> None:
    producer = Instance(connections[0], "again/1")
    producer.add()
    producer.produce(b"again")
    assert [producer.end() for _ in range(3)] == [ErrorCode.NONE] * 3
    assert producer.end(commit=False) == ErrorCode.INVALID_TXN_STATE
    assert visible(connections[0]).count(b"again") == 1


@pytest.mark.parametrize(("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (3, ErrorCode.PRODUCER_FENCED)])
def test_a_zombie_can_do_nothing(connections: list[Connection], version: int, code: ErrorCode) -> None:
    """Its code depends on what its version of the protocol knows."""
    zombie = Instance(connections[0], f"zombie/{version}")
    assert zombie.add() == ErrorCode.NONE
    assert zombie.produce(b"zombie: before") == ErrorCode.NONE
    successor = Instance(connections[1], f"zombie/{version}")
    assert (successor.producer_id, successor.epoch) == (zombie.producer_id, zombie.epoch + 1)
    assert zombie.produce(b"zombie: after") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert zombie.add(version) == code
    assert zombie.end(version=version) == code
    assert successor.add() == ErrorCode.NONE
    assert zombie.produce(b"zombie: into another's") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert successor.produce(b"successor") == ErrorCode.NONE
    assert successor.end() == ErrorCode.NONE
    values = visible(connections[0])
    assert values[-1] == b"successor"
    assert not [value for value in values if value.startswith(b"zombie")]


def test_a_draft_after_the_end_is_refused(connections: list[Connection]) -> None:
    producer = Instance(connections[0], "after/1")
    producer.add()
    producer.produce(b"after: in time")
    assert producer.end() == ErrorCode.NONE
    assert producer.produce(b"after: too late") == ErrorCode.INVALID_TXN_STATE
    assert producer.add() == ErrorCode.NONE
    assert producer.end(commit=False) == ErrorCode.NONE
    assert producer.produce(b"after: aborted") == ErrorCode.INVALID_TXN_STATE
    assert visible(connections[0])[-1] == b"after: in time"


def test_a_repeated_draft_counts_once(connections: list[Connection]) -> None:
    producer = Instance(connections[0], "twice/1")
    producer.add()
    for _ in range(3):
        assert producer.produce(b"twice: a", sequence=0) == ErrorCode.NONE
    assert producer.produce(b"twice: c", sequence=2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.produce(b"twice: b", sequence=1) == ErrorCode.NONE
    assert producer.end() == ErrorCode.NONE
    assert visible(connections[0])[-2:] == [b"twice: a", b"twice: b"]


def test_a_repeated_plain_batch_counts_once(connections: list[Connection]) -> None:
    connection = connections[0]
    given = connection.ask(ApiKey.INIT_PRODUCER_ID, 2, {"transactional_id": None, "transaction_timeout_ms": 1})
    batch = build_batch([Message(b"plain twice")], producer_id=given.producer_id, producer_epoch=0, base_sequence=0)
    topics = [{"name": TOPIC, "partition_data": [{"index": 0, "records": batch}]}]
    body = {"acks": -1, "timeout_ms": 5_000, "topic_data": topics}
    offsets = {
        connection.ask(ApiKey.PRODUCE, 7, body).responses[0].partition_responses[0].base_offset for _ in range(3)
    }
    assert len(offsets) == 1
    assert visible(connection).count(b"plain twice") == 1


def renew(connection: Connection, transactional_id: str, identity: tuple[int, int], version: int) -> tuple[int, int]:
    """Ask for the next epoch as the owner of an old identity (KIP-360): the error, and the epoch."""
    body = {"transactional_id": transactional_id, "transaction_timeout_ms": 60_000}
    body |= dict(zip(("producer_id", "producer_epoch"), identity, strict=True))
    answer = connection.ask(ApiKey.INIT_PRODUCER_ID, version, body)
    return int(answer.error_code), int(answer.producer_epoch)


def test_an_old_identity_is_refused_once_another_instance_came(connections: list[Connection]) -> None:
    """An instance may renew its identity, and ask again if the answer was lost; a zombie may not."""
    producer = Instance(connections[0], "renewed/1")
    old = (producer.producer_id, producer.epoch)
    assert renew(connections[0], "renewed/1", old, 3) == (ErrorCode.NONE, 1)
    assert renew(connections[0], "renewed/1", old, 3) == (ErrorCode.NONE, 2)
    successor = Instance(connections[1], "renewed/1")
    for epoch in (0, 2, -1):
        zombie = (producer.producer_id, epoch)
        assert renew(connections[0], "renewed/1", zombie, 3)[0] == ErrorCode.INVALID_PRODUCER_EPOCH
        assert renew(connections[0], "renewed/1", zombie, 4)[0] == ErrorCode.PRODUCER_FENCED
    assert successor.add() == ErrorCode.NONE
    assert successor.produce(b"renewed: successor") == ErrorCode.NONE
    assert successor.end() == ErrorCode.NONE


def test_late_offsets_never_join_a_later_transaction(connections: list[Connection]) -> None:
    """As a late EndTxn, a TxnOffsetCommit that was stuck on an old connection is refused."""
    old, new, _ = connections
    producer = Instance(old, "late-offsets/1")

    def commit_offset(offset: int, on: Connection) -> int:
        row = {"partition_index": 0, "committed_offset": offset}
        body = producer._identity() | {"group_id": "late-offsets", "topics": [{"name": TOPIC, "partitions": [row]}]}
        return int(on.ask(ApiKey.TXN_OFFSET_COMMIT, 2, body).topics[0].partitions[0].error_code)

    def join(on: Connection) -> None:
        body = producer._identity() | {"group_id": "late-offsets"}
        assert on.ask(ApiKey.ADD_OFFSETS_TO_TXN, 1, body).error_code == ErrorCode.NONE

    join(old)
    assert commit_offset(1, old) == ErrorCode.NONE
    assert commit_offset(1, new) == ErrorCode.NONE
    assert producer.end(on=new) == ErrorCode.NONE
    join(new)
    assert commit_offset(2, new) == ErrorCode.NONE
    assert commit_offset(1, old) == ErrorCode.INVALID_TXN_STATE
    assert producer.end(on=new) == ErrorCode.NONE
    asked = {"group_id": "late-offsets", "topics": [{"name": TOPIC, "partition_indexes": [0]}]}
    found = new.ask(ApiKey.OFFSET_FETCH, 5, asked).topics[0].partitions[0]
    assert found.committed_offset == 2


def test_a_timeout_aborts_and_fences(tmp_path_factory: pytest.TempPathFactory) -> None:
    with BrokerProcess(tmp_path_factory.mktemp("timeout"), "transaction.abort.interval.ms=20") as broker:
        with Connection(broker.address) as connection:
            connection.ask(ApiKey.METADATA, 9, {"topics": [{"name": TOPIC}], "allow_auto_topic_creation": True})
            answer = connection.ask(
                ApiKey.INIT_PRODUCER_ID, 2, {"transactional_id": "slow/1", "transaction_timeout_ms": 10**9}
            )
            assert answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
            producer = Instance(connection, "slow/1")
            body = {"transactional_id": "slow/1", "transaction_timeout_ms": 200}
            answer = connection.ask(ApiKey.INIT_PRODUCER_ID, 2, body)
            producer.epoch = answer.producer_epoch
            assert producer.add() == ErrorCode.NONE
            assert producer.produce(b"slow") == ErrorCode.NONE
            eventually(lambda: producer.produce(b"slow") == ErrorCode.INVALID_PRODUCER_EPOCH)
            assert producer.add() == ErrorCode.INVALID_PRODUCER_EPOCH
            assert producer.end() == ErrorCode.INVALID_PRODUCER_EPOCH
            assert visible(connection) == []
            # KIP-588: the instance that a timeout fenced may go on with the next epoch, if nobody else has come.
            identity = (producer.producer_id, producer.epoch)
            assert renew(connection, "slow/1", identity, 3) == (ErrorCode.NONE, producer.epoch + 2)
        assert "it was open for more than its timeout of 200 ms" in broker.log
