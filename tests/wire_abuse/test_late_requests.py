"""Late requests: what was stuck on an old connection never touches a later transaction."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from faircopy.api.add_offsets_to_txn import SCHEMA as ADD_OFFSETS_TO_TXN
from faircopy.api.offset_fetch import SCHEMA as OFFSET_FETCH
from faircopy.api.txn_offset_commit import SCHEMA as TXN_OFFSET_COMMIT
from faircopy.client.connection import BrokerConnection
from faircopy.wire.error_codes import ErrorCode
from tests.broker_process import BrokerProcess
from tests.wire_abuse.instance import TOPIC, Instance, visible


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


def test_a_late_request_is_refused_though_all_that_its_producer_used_is_closed(
    connections: list[BrokerConnection], broker: BrokerProcess
) -> None:
    """What the broker keeps of connections goes with them, but not that there were newer ones."""
    old, other, _ = connections
    with BrokerConnection(broker.address) as first:
        producer = Instance(first, "late-closed/1")
        assert producer.add() == ErrorCode.NONE
        assert producer.produce(b"late-closed: half") == ErrorCode.NONE
    with BrokerConnection(broker.address) as producer.connection:
        assert producer.end() == ErrorCode.NONE
        assert producer.add() == ErrorCode.NONE
    assert producer.produce(b"late-closed: late", on=other) == ErrorCode.NOT_ENOUGH_REPLICAS
    for commit in (True, False):
        assert producer.end(commit=commit, on=old) == ErrorCode.CONCURRENT_TRANSACTIONS
    with BrokerConnection(broker.address) as producer.connection:
        assert producer.produce(b"late-closed: other half") == ErrorCode.NONE
        assert producer.end() == ErrorCode.NONE
    assert visible(old)[-2:] == [b"late-closed: half", b"late-closed: other half"]


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


def test_late_offsets_never_join_a_later_transaction(connections: list[BrokerConnection]) -> None:
    """As a late EndTxn, a TxnOffsetCommit that was stuck on an old connection is refused."""
    old, new, _ = connections
    producer = Instance(old, "late-offsets/1")

    def commit_offset(offset: int, on: BrokerConnection) -> int:
        row = {"partition_index": 0, "committed_offset": offset}
        body = producer.identity() | {
            "group_id": "late-offsets",
            "topics": [{"name": TOPIC, "partitions": [row]}],
        }
        return int(on.ask(TXN_OFFSET_COMMIT, 2, body).topics[0].partitions[0].error_code)

    def join(on: BrokerConnection) -> None:
        body = producer.identity() | {"group_id": "late-offsets"}
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
