"""Old instances, late requests and repeated ones, made by hand: no real client sends them on demand."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from faircopy.api.add_offsets_to_txn import SCHEMA as ADD_OFFSETS_TO_TXN
from faircopy.api.add_partitions_to_txn import SCHEMA as ADD_PARTITIONS_TO_TXN
from faircopy.api.create_topics import SCHEMA as CREATE_TOPICS
from faircopy.api.end_txn import SCHEMA as END_TXN
from faircopy.api.fetch.fetch import SCHEMA as FETCH
from faircopy.api.init_producer_id import SCHEMA as INIT_PRODUCER_ID
from faircopy.api.list_offsets import SCHEMA as LIST_OFFSETS
from faircopy.api.metadata import SCHEMA as METADATA
from faircopy.api.offset_fetch import SCHEMA as OFFSET_FETCH
from faircopy.api.produce.produce import SCHEMA as PRODUCE
from faircopy.api.txn_offset_commit import SCHEMA as TXN_OFFSET_COMMIT
from faircopy.client.connection import BrokerConnection
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch, decode_records
from tests.broker_process import BrokerProcess, eventually

TOPIC = "haunted"


class Instance:
    """A transactional producer, one request at a time, on any of its connections."""

    def __init__(self, connection: BrokerConnection, transactional_id: str) -> None:
        self.connection = connection
        self._id = transactional_id
        answer = connection.ask(
            INIT_PRODUCER_ID,
            2,
            {"transactional_id": transactional_id, "transaction_timeout_ms": 60_000},
        )
        assert answer.error_code == ErrorCode.NONE
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequence = 0

    def _identity(self) -> dict[str, object]:
        return {"transactional_id": self._id, "producer_id": self.producer_id, "producer_epoch": self.epoch}

    def add(self, version: int = 1, on: BrokerConnection | None = None) -> int:
        topics = {"topics": [{"name": TOPIC, "partitions": [0]}]}
        answer = (on or self.connection).ask(ADD_PARTITIONS_TO_TXN, version, self._identity() | topics)
        return int(answer.results[0].partitions[0].error_code)

    def produce(self, value: bytes, sequence: int | None = None, on: BrokerConnection | None = None) -> int:
        """Produce one message; a repeated one if its sequence is given."""
        batch = build_batch(
            [NewRecord(value)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence if sequence is None else sequence,
            transactional=True,
        )
        partitions = [{"index": 0, "records": batch}]
        body = {"transactional_id": self._id, "acks": -1, "timeout_ms": 5_000}
        topics = {"topic_data": [{"name": TOPIC, "partition_data": partitions}]}
        answer = (on or self.connection).ask(PRODUCE, 7, body | topics)
        code = int(answer.responses[0].partition_responses[0].error_code)
        if sequence is None and not code:
            self.sequence += 1
        return code

    def end(self, *, commit: bool = True, on: BrokerConnection | None = None, version: int = 1) -> int:
        body = self._identity() | {"committed": commit}
        return int((on or self.connection).ask(END_TXN, version, body).error_code)


@pytest.fixture
def connections(broker: BrokerProcess) -> Iterator[list[BrokerConnection]]:
    """Three connections, in the order in which they were made."""
    made = [BrokerConnection(broker.address) for _ in range(3)]
    made[0].ask(METADATA, 9, {"topics": [{"name": TOPIC}], "allow_auto_topic_creation": True})
    yield made
    for connection in made:
        connection.__exit__()


def visible(connection: BrokerConnection) -> list[bytes]:
    """All values in the topic's log, once what is acked is visible (P8)."""
    end = connection.ask(
        LIST_OFFSETS,
        5,
        {"topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "timestamp": -1}]}]},
    )
    end_offset = end.topics[0].partitions[0].offset
    values: list[bytes] = []
    while len(values) < end_offset:
        asked = {"partition": 0, "fetch_offset": len(values), "partition_max_bytes": 1}
        body = {
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 1,
            "topics": [{"topic": TOPIC, "partitions": [asked]}],
        }
        records = connection.ask(FETCH, 11, body).responses[0].partitions[0].records
        values += [record.value or b"" for record in decode_records(bytes(records))]
    return values


def test_a_late_end_never_ends_a_later_transaction(connections: list[BrokerConnection]) -> None:
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
        assert producer.end(commit=commit, on=old) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert b"late: half" not in visible(new)
    assert producer.produce(b"late: other half") == ErrorCode.NONE
    assert producer.end() == ErrorCode.NONE
    assert visible(new)[-3:] == [b"late: first", b"late: half", b"late: other half"]


def test_a_late_draft_never_joins_a_later_transaction(connections: list[BrokerConnection]) -> None:
    """It has the sequence of the next message, which would be taken for its duplicate, and lost."""
    old, new, _ = connections
    producer = Instance(old, "late-draft/1")
    assert producer.add() == ErrorCode.NONE
    # What the client has sent on the old connection is stuck; it gives up, and begins again.
    producer.connection = new
    assert producer.end(commit=False) == ErrorCode.NONE
    assert producer.add() == ErrorCode.NONE
    assert producer.produce(b"late-draft: aborted", sequence=0, on=old) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert producer.produce(b"late-draft: in time") == ErrorCode.NONE
    assert producer.produce(b"late-draft: aborted too", sequence=1, on=old) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert producer.end() == ErrorCode.NONE
    assert [value for value in visible(new) if value.startswith(b"late-draft")] == [b"late-draft: in time"]


def test_a_client_may_use_its_connections_by_turns(connections: list[BrokerConnection]) -> None:
    """As kafka-go does, with a pool: what is refused as late, it sends again, on any of them."""
    producer = Instance(connections[0], "pool/1")
    turns = itertools.cycle(connections)
    refusals = 0

    def insist(ask: Callable[[BrokerConnection], int]) -> None:
        nonlocal refusals
        while (code := ask(next(turns))) != ErrorCode.NONE:
            assert code in (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS)
            refusals += 1

    def insist_on_producing(value: bytes) -> None:
        insist(lambda on: producer.produce(value, on=on))

    for number in range(50):
        insist(lambda on: producer.add(on=on))
        insist_on_producing(b"pool: %d" % number)
        insist(lambda on: producer.end(on=on))
    assert [value for value in visible(connections[0]) if value.startswith(b"pool")] == [
        b"pool: %d" % number for number in range(50)
    ]
    assert refusals < 25, "once a connection is known to be live, nothing is refused any more"


def test_nobody_harms_a_producer_by_naming_its_id(connections: list[BrokerConnection]) -> None:
    """Whoever has another transactional id, or none, leaves no trace of what was refused."""
    own, foreign, _ = connections
    victim, attacker = Instance(own, "victim/1"), Instance(foreign, "attacker/1")
    attacker.producer_id, attacker.epoch = victim.producer_id, victim.epoch
    assert victim.add() == ErrorCode.NONE
    row = {"partition_index": 0, "committed_offset": 1}
    body = attacker._identity() | {"group_id": "victims", "topics": [{"name": TOPIC, "partitions": [row]}]}
    offsets = foreign.ask(TXN_OFFSET_COMMIT, 2, body).topics[0].partitions[0].error_code
    codes = [int(offsets), attacker.add(), attacker.end(), attacker.produce(b"victim: injected")]
    assert codes == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 3 + [ErrorCode.INVALID_TXN_STATE]
    assert victim.produce(b"victim") == ErrorCode.NONE
    assert victim.end() == ErrorCode.NONE
    assert [value for value in visible(own) if value.startswith(b"victim")] == [b"victim"]


@pytest.mark.parametrize("transactional_id", ["in-flight/1", None])
def test_a_batch_after_a_refused_one_waits_for_it(
    connections: list[BrokerConnection], transactional_id: str | None
) -> None:
    """Several are in flight, and the first is refused for a passing reason: a flipped bit.

    If the second were taken, the first one's retry would be called a duplicate, and be lost.
    """
    connection = connections[0]
    producer = Instance(connection, transactional_id) if transactional_id else None
    if producer is not None:
        assert producer.add() == ErrorCode.NONE
        identity = (producer.producer_id, producer.epoch)
    else:
        given = connection.ask(INIT_PRODUCER_ID, 2, {"transactional_id": None, "transaction_timeout_ms": 1})
        identity = (given.producer_id, given.producer_epoch)

    def send(sequence: int, *, flip: bool = False) -> int:
        batch = bytearray(
            build_batch(
                [NewRecord(b"in flight: %d" % sequence)],
                producer_id=identity[0],
                producer_epoch=identity[1],
                base_sequence=sequence,
                transactional=producer is not None,
            )
        )
        batch[-1] ^= flip
        body = {"transactional_id": transactional_id, "acks": -1, "timeout_ms": 5_000}
        topics = {"topic_data": [{"name": TOPIC, "partition_data": [{"index": 0, "records": bytes(batch)}]}]}
        answer = connection.ask(PRODUCE, 7, body | topics)
        return int(answer.responses[0].partition_responses[0].error_code)

    before = len(visible(connection))
    assert send(0, flip=True) == ErrorCode.CORRUPT_MESSAGE
    assert [send(sequence) for sequence in range(1, 5)] == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER] * 4
    assert [send(sequence) for sequence in range(5)] == [ErrorCode.NONE] * 5
    if producer is not None:
        assert producer.end() == ErrorCode.NONE
    assert visible(connection)[before:] == [b"in flight: %d" % sequence for sequence in range(5)]


def test_a_repeated_end_is_answered_as_the_first(connections: list[BrokerConnection]) -> None:
    producer = Instance(connections[0], "again/1")
    producer.add()
    producer.produce(b"again")
    assert [producer.end() for _ in range(3)] == [ErrorCode.NONE] * 3
    assert producer.end(commit=False) == ErrorCode.INVALID_TXN_STATE
    assert visible(connections[0]).count(b"again") == 1


@pytest.mark.parametrize(
    ("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (3, ErrorCode.PRODUCER_FENCED)]
)
def test_a_zombie_can_do_nothing(connections: list[BrokerConnection], version: int, code: ErrorCode) -> None:
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


def test_a_draft_after_the_end_is_refused(connections: list[BrokerConnection]) -> None:
    producer = Instance(connections[0], "after/1")
    producer.add()
    producer.produce(b"after: in time")
    assert producer.end() == ErrorCode.NONE
    assert producer.produce(b"after: too late") == ErrorCode.INVALID_TXN_STATE
    assert producer.add() == ErrorCode.NONE
    assert producer.end(commit=False) == ErrorCode.NONE
    assert producer.produce(b"after: aborted") == ErrorCode.INVALID_TXN_STATE
    assert visible(connections[0])[-1] == b"after: in time"


def test_a_repeated_draft_counts_once(connections: list[BrokerConnection]) -> None:
    producer = Instance(connections[0], "twice/1")
    producer.add()
    for _ in range(3):
        assert producer.produce(b"twice: a", sequence=0) == ErrorCode.NONE
    assert producer.produce(b"twice: c", sequence=2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.produce(b"twice: b", sequence=1) == ErrorCode.NONE
    assert producer.end() == ErrorCode.NONE
    assert visible(connections[0])[-2:] == [b"twice: a", b"twice: b"]


def test_acks_of_drafts_tell_expected_offsets_where_the_topic_says_so(
    connections: list[BrokerConnection],
) -> None:
    """Those that the messages get if nobody else writes before the commit, and never a higher one."""
    connection = connections[0]
    expecting = {"name": "expecting", "num_partitions": 1, "replication_factor": 1, "assignments": []}
    configs = [{"name": "transactional.ack.offset", "value": "expected"}]
    body = {"topics": [expecting | {"configs": configs}], "timeout_ms": 5_000}
    assert connection.ask(CREATE_TOPICS, 5, body).topics[0].error_code == ErrorCode.NONE
    given = connection.ask(INIT_PRODUCER_ID, 2, {"transactional_id": "e/1", "transaction_timeout_ms": 60_000})
    identity = {
        "transactional_id": "e/1",
        "producer_id": given.producer_id,
        "producer_epoch": given.producer_epoch,
    }

    def add() -> None:
        for topic in ("expecting", TOPIC):
            topics = {"topics": [{"name": topic, "partitions": [0]}]}
            answer = connection.ask(ADD_PARTITIONS_TO_TXN, 1, identity | topics)
            assert answer.results[0].partitions[0].error_code == ErrorCode.NONE

    def produce(topic: str, sequence: int | None, *values: bytes) -> int:
        named = {
            "producer_id": given.producer_id,
            "producer_epoch": given.producer_epoch,
            "transactional": True,
        }
        header = named | {"base_sequence": sequence} if sequence is not None else {}
        batch = build_batch([NewRecord(value) for value in values], **header)
        data = {"name": topic, "partition_data": [{"index": 0, "records": batch}]}
        transactional_id = "e/1" if sequence is not None else None
        body = {"transactional_id": transactional_id, "acks": -1, "timeout_ms": 5_000, "topic_data": [data]}
        answer = connection.ask(PRODUCE, 7, body).responses[0].partition_responses[0]
        assert answer.error_code == ErrorCode.NONE
        return int(answer.base_offset)

    add()
    assert produce("expecting", None, b"plain") == 0
    assert [produce("expecting", 0, b"a", b"b"), produce("expecting", 2, b"c")] == [1, 3]
    assert produce("expecting", 0, b"a", b"b") == 1, "repeated"
    assert produce(TOPIC, 0, b"expected: elsewhere") == -1
    assert produce("expecting", None, b"plain: in between") == 1
    assert produce("expecting", 3, b"d") == 5, "after what this transaction and others have by now"
    end = connection.ask(END_TXN, 1, identity | {"committed": True})
    assert end.error_code == ErrorCode.NONE
    add()
    assert produce("expecting", 4, b"e") == 6


def test_a_repeated_plain_batch_counts_once(connections: list[BrokerConnection]) -> None:
    connection = connections[0]
    given = connection.ask(INIT_PRODUCER_ID, 2, {"transactional_id": None, "transaction_timeout_ms": 1})
    batch = build_batch(
        [NewRecord(b"plain twice")], producer_id=given.producer_id, producer_epoch=0, base_sequence=0
    )
    topics = [{"name": TOPIC, "partition_data": [{"index": 0, "records": batch}]}]
    body = {"acks": -1, "timeout_ms": 5_000, "topic_data": topics}
    offsets = {
        connection.ask(PRODUCE, 7, body).responses[0].partition_responses[0].base_offset for _ in range(3)
    }
    assert len(offsets) == 1
    assert visible(connection).count(b"plain twice") == 1


def renew(
    connection: BrokerConnection, transactional_id: str, identity: tuple[int, int], version: int
) -> tuple[int, int]:
    """Ask for the next epoch as the owner of an old identity (KIP-360): the error, and the epoch."""
    body = {"transactional_id": transactional_id, "transaction_timeout_ms": 60_000}
    body |= dict(zip(("producer_id", "producer_epoch"), identity, strict=True))
    answer = connection.ask(INIT_PRODUCER_ID, version, body)
    return int(answer.error_code), int(answer.producer_epoch)


def test_an_old_identity_is_refused_once_another_instance_came(connections: list[BrokerConnection]) -> None:
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


def test_late_offsets_never_join_a_later_transaction(connections: list[BrokerConnection]) -> None:
    """As a late EndTxn, a TxnOffsetCommit that was stuck on an old connection is refused."""
    old, new, _ = connections
    producer = Instance(old, "late-offsets/1")

    def commit_offset(offset: int, on: BrokerConnection) -> int:
        row = {"partition_index": 0, "committed_offset": offset}
        body = producer._identity() | {
            "group_id": "late-offsets",
            "topics": [{"name": TOPIC, "partitions": [row]}],
        }
        return int(on.ask(TXN_OFFSET_COMMIT, 2, body).topics[0].partitions[0].error_code)

    def join(on: BrokerConnection) -> None:
        body = producer._identity() | {"group_id": "late-offsets"}
        assert on.ask(ADD_OFFSETS_TO_TXN, 1, body).error_code == ErrorCode.NONE

    join(old)
    assert commit_offset(1, old) == ErrorCode.NONE
    assert commit_offset(1, new) == ErrorCode.NONE
    assert producer.end(on=new) == ErrorCode.NONE
    join(new)
    assert commit_offset(1, old) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "before and after the next"
    assert commit_offset(2, new) == ErrorCode.NONE
    assert commit_offset(3, old) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert producer.end(on=new) == ErrorCode.NONE
    asked = {"group_id": "late-offsets", "topics": [{"name": TOPIC, "partition_indexes": [0]}]}
    found = new.ask(OFFSET_FETCH, 5, asked).topics[0].partitions[0]
    assert found.committed_offset == 2


def test_a_timeout_aborts_and_fences(tmp_path_factory: pytest.TempPathFactory) -> None:
    with BrokerProcess(tmp_path_factory.mktemp("timeout"), "transaction.abort.interval.ms=20") as broker:
        with BrokerConnection(broker.address) as connection:
            connection.ask(METADATA, 9, {"topics": [{"name": TOPIC}], "allow_auto_topic_creation": True})
            answer = connection.ask(
                INIT_PRODUCER_ID, 2, {"transactional_id": "slow/1", "transaction_timeout_ms": 10**9}
            )
            assert answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
            producer = Instance(connection, "slow/1")
            body = {"transactional_id": "slow/1", "transaction_timeout_ms": 200}
            answer = connection.ask(INIT_PRODUCER_ID, 2, body)
            producer.epoch = answer.producer_epoch
            assert producer.add() == ErrorCode.NONE
            assert producer.produce(b"slow") == ErrorCode.NONE
            eventually(lambda: producer.produce(b"slow") == ErrorCode.INVALID_PRODUCER_EPOCH)
            assert producer.add() == ErrorCode.INVALID_PRODUCER_EPOCH
            assert producer.end() == ErrorCode.INVALID_PRODUCER_EPOCH
            assert visible(connection) == []
            # KIP-588: an instance that a timeout fenced goes on with the next epoch, if nobody else has come.
            identity = (producer.producer_id, producer.epoch)
            assert renew(connection, "slow/1", identity, 3) == (ErrorCode.NONE, producer.epoch + 2)
        assert "it was open for more than its timeout of 200 ms" in broker.log
