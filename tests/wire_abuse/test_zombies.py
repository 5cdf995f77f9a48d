"""Old instances, and whoever takes the place of another one: fenced, and of no effect."""

from __future__ import annotations

import pytest

from faircopy.api.init_producer_id import SCHEMA as INIT_PRODUCER_ID
from faircopy.api.metadata import SCHEMA as METADATA
from faircopy.api.txn_offset_commit import SCHEMA as TXN_OFFSET_COMMIT
from faircopy.client.connection import BrokerConnection
from faircopy.wire.error_codes import ErrorCode
from tests.broker_process import BrokerProcess, eventually
from tests.wire_abuse.instance import TOPIC, Instance, renew, visible

TIMEOUT_MS = 5_000  # long enough, on a busy machine, for what comes before it


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


def test_a_timeout_aborts_and_fences(tmp_path_factory: pytest.TempPathFactory) -> None:
    with BrokerProcess(tmp_path_factory.mktemp("timeout"), "transaction.abort.interval.ms=20") as broker:
        with BrokerConnection(broker.address) as connection:
            connection.ask(METADATA, 9, {"topics": [{"name": TOPIC}], "allow_auto_topic_creation": True})
            answer = connection.ask(
                INIT_PRODUCER_ID, 2, {"transactional_id": "slow/1", "transaction_timeout_ms": 10**9}
            )
            assert answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
            producer = Instance(connection, "slow/1")
            body = {"transactional_id": "slow/1", "transaction_timeout_ms": TIMEOUT_MS}
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
        assert f"it was open for more than its timeout of {TIMEOUT_MS} ms" in broker.log


def test_nobody_harms_a_producer_by_naming_its_id(connections: list[BrokerConnection]) -> None:
    """Whoever has another transactional id, or none, leaves no trace of what was refused."""
    own, foreign, _ = connections
    victim, attacker = Instance(own, "victim/1"), Instance(foreign, "attacker/1")
    attacker.producer_id, attacker.epoch = victim.producer_id, victim.epoch
    assert victim.add() == ErrorCode.NONE
    row = {"partition_index": 0, "committed_offset": 1}
    body = attacker.identity() | {"group_id": "victims", "topics": [{"name": TOPIC, "partitions": [row]}]}
    offsets = foreign.ask(TXN_OFFSET_COMMIT, 2, body).topics[0].partitions[0].error_code
    codes = [int(offsets), attacker.add(), attacker.end(), attacker.produce(b"victim: injected")]
    assert codes == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 3 + [ErrorCode.INVALID_TXN_STATE]
    assert victim.produce(b"victim") == ErrorCode.NONE
    assert victim.end() == ErrorCode.NONE
    assert [value for value in visible(own) if value.startswith(b"victim")] == [b"victim"]
