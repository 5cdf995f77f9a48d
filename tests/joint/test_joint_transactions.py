"""Joint transactions on a real broker: several writers, one decision, under kill -9."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faircopy.api.init_producer_id import SCHEMA as INIT_PRODUCER_ID
from faircopy.client.connection import BrokerConnection
from faircopy.wire.error_codes import ErrorCode
from tests.broker_process import BrokerProcess, eventually
from tests.joint.asking import Member, ask_to_join, end_joint, forget_group, join, make_topic, visible

GONE = (
    ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_ID_MAPPING
)  # fmt: skip
"""The answers to a member that is fenced: the first one while something is remembered of it."""


@pytest.fixture
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerConnection]:
    settings = ("transaction.abort.interval.ms=20", "topic.partitions=3")
    broker = BrokerProcess(tmp_path_factory.mktemp("joint"), *settings)
    with broker, BrokerConnection(broker.address) as made:
        make_topic(made)
        yield made


def test_members_commit_by_one_decision(connection: BrokerConnection) -> None:
    first, second = join(connection, "g", "r", 0, "a"), join(connection, "g", "r", 0, "b")
    first.write(b"a0")
    second.write(b"b0")
    second.write(b"b1", partition=1)
    first.write(b"a1")
    assert visible(connection) == visible(connection, 1) == []
    assert end_joint(connection, "g", "r", 0, first, second) == ErrorCode.NONE
    assert sorted(visible(connection)) == [b"a0", b"a1", b"b0"]
    assert visible(connection, 1) == [b"b1"]


def test_attempts_that_are_not_named_are_discarded(connection: BrokerConnection) -> None:
    failed, lagging = join(connection, "g", "r", 3, "task"), join(connection, "g", "r", 3, "task")
    good = join(connection, "g", "r", 3, "task")
    for attempt in (failed, good):
        attempt.write(b"value")
    assert end_joint(connection, "g", "r", 3, good) == ErrorCode.NONE
    assert visible(connection) == [b"value"]
    assert failed.produce(b"late") in GONE
    assert lagging.add() == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert visible(connection) == [b"value"]


def test_a_repeated_commit_and_a_repeated_join_are_told(connection: BrokerConnection) -> None:
    member = join(connection, "g", "r", 7)
    member.write(b"seven")
    assert end_joint(connection, "g", "r", 7, member) == ErrorCode.NONE
    assert end_joint(connection, "g", "r", 7, member) == ErrorCode.NONE
    assert end_joint(connection, "g", "r", 7) == ErrorCode.NONE
    assert ask_to_join(connection, "g", "r", 7) == (ErrorCode.NONE, None)
    assert ask_to_join(connection, "g", "another run", 7) == (ErrorCode.NONE, None)
    assert ask_to_join(connection, "g", "r", 6)[0] == ErrorCode.INVALID_REQUEST
    assert end_joint(connection, "g", "r", 6) == ErrorCode.INVALID_REQUEST
    assert end_joint(connection, "g", "r", 7, commit=False) == ErrorCode.INVALID_TXN_STATE
    assert visible(connection) == [b"seven"]


def test_a_key_without_anything_to_write_counts(connection: BrokerConnection) -> None:
    idle = join(connection, "g", "r", 1)
    assert end_joint(connection, "g", "r", 0) == ErrorCode.NONE
    assert end_joint(connection, "g", "r", 1, idle) == ErrorCode.NONE
    assert ask_to_join(connection, "g", "r", 1) == (ErrorCode.NONE, None)
    assert idle.add() == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_new_run_fences_the_former_one(connection: BrokerConnection) -> None:
    zombie, waiting = join(connection, "g", "old", 0), join(connection, "g", "old", 0)
    zombie.write(b"zombie")
    successor = join(connection, "g", "new", 0)
    assert zombie.produce(b"zombie") in GONE
    assert waiting.add() == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert ask_to_join(connection, "g", "old", 0)[0] == ErrorCode.PRODUCER_FENCED
    assert end_joint(connection, "g", "old", 0, zombie) == ErrorCode.PRODUCER_FENCED
    assert end_joint(connection, "g", "old", 0, commit=False) == ErrorCode.PRODUCER_FENCED
    assert end_joint(connection, "g", "new", 0, zombie) == ErrorCode.INVALID_TXN_STATE
    successor.write(b"successor")
    assert end_joint(connection, "g", "new", 0, successor) == ErrorCode.NONE
    assert visible(connection) == [b"successor"]


def test_an_abort_discards_what_a_key_has_written(connection: BrokerConnection) -> None:
    member, of_another_key = join(connection, "g", "r", 0), join(connection, "g", "r", 1)
    member.write(b"aborted")
    of_another_key.write(b"another key")
    assert end_joint(connection, "g", "r", 0, commit=False) == ErrorCode.NONE
    assert end_joint(connection, "g", "r", 0, commit=False) == ErrorCode.NONE
    assert end_joint(connection, "g", "r", 0, member) == ErrorCode.INVALID_TXN_STATE
    again = join(connection, "g", "r", 0)
    again.write(b"again")
    assert end_joint(connection, "g", "r", 0, again) == ErrorCode.NONE
    assert end_joint(connection, "g", "r", 1, of_another_key) == ErrorCode.NONE
    assert visible(connection) == [b"again", b"another key"]


def test_a_member_past_its_timeout_spoils_the_commit(connection: BrokerConnection) -> None:
    _, slow = ask_to_join(connection, "g", "r", 0, timeout_ms=5_000)
    assert slow is not None
    other = join(connection, "g", "r", 0)
    slow.write(b"slow")
    other.write(b"other")
    eventually(lambda: slow.produce(b"slow") != ErrorCode.NONE)
    assert end_joint(connection, "g", "r", 0, slow, other) == ErrorCode.INVALID_TXN_STATE
    assert visible(connection) == []
    assert end_joint(connection, "g", "r", 0, other) == ErrorCode.NONE
    assert visible(connection) == [b"other"]


def test_a_member_can_neither_commit_alone_nor_renew_itself(connection: BrokerConnection) -> None:
    member = join(connection, "g", "r", 0)
    member.write(b"value")
    assert member.end(commit=True) == ErrorCode.INVALID_TXN_STATE
    body = {"transactional_id": member.transactional_id, "transaction_timeout_ms": 60_000}
    assert connection.ask(INIT_PRODUCER_ID, 2, body).error_code == ErrorCode.INVALID_REQUEST
    assert end_joint(connection, "g", "r", 0, member) == ErrorCode.NONE
    assert visible(connection) == [b"value"]
    alone = join(connection, "g", "r", 1)
    alone.write(b"dropped")
    assert alone.end(commit=False) == ErrorCode.NONE
    assert end_joint(connection, "g", "r", 1, alone) == ErrorCode.INVALID_TXN_STATE


def test_members_without_a_key_commit_on_their_own(connection: BrokerConnection) -> None:
    """So one process may have several transactions open."""
    members = [join(connection, "g", "r", -1, str(number)) for number in range(3)]
    for number, member in enumerate(members):
        member.write(b"%d" % number)
    for number in (1, 0, 2):
        assert members[number].end(commit=number != 0) == ErrorCode.NONE
    members[1].write(b"1 again")
    assert members[1].end(commit=True) == ErrorCode.NONE
    assert visible(connection) == [b"1", b"2", b"1 again"]
    members[2].write(b"zombie")
    join(connection, "g", "new", -1)
    assert members[2].end(commit=True) in GONE


def test_names_and_keys_that_can_not_be_are_refused(connection: BrokerConnection) -> None:
    for group, run, key in (("", "r", 0), ("a/b", "r", 0), ("g", "", 0), ("g", "r", -2), ("g" * 250, "r", 0)):
        assert ask_to_join(connection, group, run, key)[0] == ErrorCode.INVALID_REQUEST
    assert end_joint(connection, "g", "r", -1) == ErrorCode.INVALID_REQUEST
    stranger = Member(connection, "x/1", 1, 0)
    assert end_joint(connection, "g", "r", 0, stranger) == ErrorCode.INVALID_TXN_STATE
    assert (
        ask_to_join(connection, "g", "r", 0, timeout_ms=1 << 30)[0] == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    )


def test_a_group_is_forgotten_when_it_is_idle(connection: BrokerConnection) -> None:
    member = join(connection, "g", "r", 5)
    member.write(b"five")
    assert forget_group(connection, "g") == ErrorCode.NON_EMPTY_GROUP
    assert end_joint(connection, "g", "r", 5, member) == ErrorCode.NONE
    eventually(lambda: forget_group(connection, "g") == ErrorCode.NONE)
    assert forget_group(connection, "g") == ErrorCode.NONE
    anew = join(connection, "g", "r", 0)
    anew.write(b"anew")
    assert end_joint(connection, "g", "r", 0, anew) == ErrorCode.NONE
    assert visible(connection) == [b"five", b"anew"]


@pytest.mark.parametrize("kill", [True, False])
def test_decided_keys_and_members_outlive_the_broker(
    tmp_path_factory: pytest.TempPathFactory, *, kill: bool
) -> None:
    with BrokerProcess(tmp_path_factory.mktemp("joint")) as broker:
        with BrokerConnection(broker.address) as connection:
            make_topic(connection)
            done, open_one = join(connection, "g", "r", 0), join(connection, "g", "r", 1)
            done.write(b"done")
            open_one.write(b"open")
            join(connection, "former", "old", 0)
            join(connection, "former", "new", 0)
            assert end_joint(connection, "g", "r", 0, done) == ErrorCode.NONE
        broker.restart(kill=kill)
        with BrokerConnection(broker.address) as connection:
            assert ask_to_join(connection, "g", "r", 0) == (ErrorCode.NONE, None)
            assert end_joint(connection, "g", "r", 0, done) == ErrorCode.NONE
            assert ask_to_join(connection, "former", "old", 0)[0] == ErrorCode.PRODUCER_FENCED
            open_one.connection = connection
            assert end_joint(connection, "g", "r", 1, open_one) == ErrorCode.NONE
            assert visible(connection) == [b"done", b"open"]
