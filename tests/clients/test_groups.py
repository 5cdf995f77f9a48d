"""Consumer groups: members come and go, strategies, static members, committed offsets."""

from __future__ import annotations

import contextlib
import struct
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from faircopy.api.describe_groups import SCHEMA as DESCRIBE_GROUPS
from faircopy.api.heartbeat import SCHEMA as HEARTBEAT
from faircopy.api.join_group import SCHEMA as JOIN_GROUP
from faircopy.api.sync_group import SCHEMA as SYNC_GROUP
from faircopy.client.connection import BrokerConnection
from tests.broker_process import BrokerProcess, eventually
from tests.clients.adapter import REBALANCE_MS, Got, Place
from tests.clients.conftest import CLIENTS
from tests.clients.talk import Member, Talk, commit_values, create_topic, delete_topic

SETTINGS = ("durability=os", "group.initial.rebalance.delay.ms=150")
PARTITIONS = 6
GENERATIONS_MAX = 20
RETURNS_MAX = 4
SILENT_MS = 6_000  # long enough for a join on a busy machine
SHORT = ("offsets.retention.ms=300", "offsets.retention.check.interval.ms=100")


def fill(talk: Talk, topic: str, each: int = 10) -> list[bytes]:
    """Messages in all partitions; all their values."""
    create_topic(talk.address, topic, PARTITIONS)
    producer = talk.producer()
    values = [b"%d.%d" % (partition, number) for partition in range(PARTITIONS) for number in range(each)]
    for value in values:
        producer.send(topic, value, partition=int(value.split(b".")[0]))
    producer.flush()
    return values


def are_sharing(*members: Member) -> bool:
    """Whether every partition is with exactly one member, and every member has its share."""
    shares = [member.share for member in members]
    return sum(map(len, shares)) == len(set().union(*shares)) == PARTITIONS and all(shares)


@pytest.mark.parametrize(
    ("client", "strategy"),
    [(client, strategy) for client in CLIENTS for strategy in client.strategies],
    indirect=["client"],
    ids=lambda value: getattr(value, "name", value),
)
def test_members_come_and_go(talk: Talk, topic: str, strategy: str) -> None:
    """Each message is read, and with offsets committed by those who leave, none twice."""
    values = fill(talk, topic)
    first = talk.member(topic, topic, strategy=strategy)
    eventually(lambda: len(first.found) == len(values))
    assert Counter(first.values) == Counter(values)
    first.do(lambda: first.consumer.commit(ends(first.found)))
    second, third = (talk.member(topic, topic, strategy=strategy) for _ in range(2))
    eventually(lambda: are_sharing(first, second, third))
    talk.close(first)
    eventually(lambda: are_sharing(second, third))
    commit_values(talk.transactional(topic), (topic, 5), [b"late"])
    eventually(lambda: second.found or third.found)
    assert second.values + third.values == [b"late"]


def ends(found: list[Got]) -> dict[Place, int]:
    """The offset after the last message of each partition."""
    return {
        (each.topic, each.partition): each.offset + 1 for each in sorted(found, key=lambda each: each.offset)
    }


def test_a_member_that_is_silent_loses_its_share(talk: Talk, topic: str) -> None:
    """A hand-made member joins and never beats: when its session is over, the real one gets all again."""
    fill(talk, topic)
    member = talk.member(topic, topic, strategy="range")
    eventually(lambda: are_sharing(member))
    with BrokerConnection(talk.address) as connection:
        silent = silent_member(connection, topic)
        # Whether the other is seen with its smaller share is chance: kafka-python may join again at once.
        eventually(lambda: silent not in members_of(connection, topic))
        eventually(lambda: are_sharing(member))


def members_of(connection: BrokerConnection, group: str) -> set[str]:
    (described,) = connection.ask(DESCRIBE_GROUPS, 5, {"groups": [group]}).groups
    return {member.member_id for member in described.members}


def silent_member(connection: BrokerConnection, topic: str) -> str:
    """Join a group of the topic's name, take what the leader gives, and say no more; its id."""
    name = topic.encode()
    metadata = struct.pack(">hih", 0, 1, len(name)) + name + struct.pack(">i", -1)
    joining: dict[str, Any] = {
        "group_id": topic,
        "session_timeout_ms": SILENT_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": metadata}],
    }
    joining["member_id"] = connection.ask(JOIN_GROUP, 5, joining).member_id
    joined = connection.ask(JOIN_GROUP, 5, joining)
    assert not joined.error_code
    syncing = {"group_id": topic, "generation_id": joined.generation_id, "member_id": joined.member_id}
    synced = connection.ask(SYNC_GROUP, 3, syncing | {"assignments": []})
    assert not synced.error_code
    assert synced.assignment
    return str(joined.member_id)


def test_static_members_come_back_to_their_share(talk: Talk, topic: str) -> None:
    """KIP-345: a static member that returns within its session keeps its partitions, without a rebalance."""
    fill(talk, topic)
    zero, one = (talk.member(topic, topic, instance_id=f"i{number}") for number in range(2))
    eventually(partial(are_sharing, zero, one))
    for _ in range(RETURNS_MAX):
        generation, share = generation_of(talk.address, topic), zero.share
        talk.close(zero)
        zero = talk.member(topic, topic, instance_id="i0")
        eventually(partial(are_sharing, zero, one))
        if generation_of(talk.address, topic) == generation:
            break
        # kafka-python joins again when it first hears of the topic's partitions: that was no return's fault.
    else:
        pytest.fail("each return began another generation")
    assert zero.share == share


def generation_of(address: str, group: str) -> int:
    """The generation of a group, once it is stable: the one in which a member's heartbeat is taken."""
    with BrokerConnection(address) as connection:
        described = eventually(lambda: stable_group(connection, group))
        member = described.members[0]
        beat = {
            "group_id": group,
            "member_id": member.member_id,
            "group_instance_id": member.group_instance_id,
        }
        return next(
            generation
            for generation in range(1, GENERATIONS_MAX)
            if not connection.ask(HEARTBEAT, 3, beat | {"generation_id": generation}).error_code
        )


def stable_group(connection: BrokerConnection, group: str) -> Any:
    """A group as administrators see it; None while it rebalances."""
    asked = {"groups": [group], "include_authorized_operations": False}
    described = connection.ask(DESCRIBE_GROUPS, 4, asked).groups[0]
    return described if described.group_state == "Stable" else None


def test_committed_offsets(talk: Talk, topic: str) -> None:
    create_topic(talk.address, topic, 2)
    commit_values(talk.transactional(topic), (topic, 0), [b"%d" % number for number in range(10)])
    places = [(topic, 0), (topic, 1)]
    consumer = talk.consumer(group=topic)
    consumer.assign(dict.fromkeys(places, 0))
    assert consumer.committed(places) == dict.fromkeys(places)
    consumer.commit({places[0]: 7})
    assert consumer.committed(places) == {places[0]: 7, places[1]: None}
    consumer.commit({places[0]: 3, places[1]: 0})
    assert consumer.committed(places) == {places[0]: 3, places[1]: 0}
    talk.close(consumer)
    again = talk.member(topic, topic)
    eventually(lambda: len(again.found) == 7)
    assert again.found[0].offset == 3


@pytest.mark.parametrize("kill", [False, True], ids=["stop", "kill"])
def test_committed_offsets_survive_the_broker(tmp_path: Path, topic: str, kill: bool) -> None:
    """Each client commits, with default durability; the broker ends, and all is there again."""
    with BrokerProcess(tmp_path, "plain.enabled=false") as broker:
        create_topic(broker.address, topic, len(CLIENTS))
        for number, client in enumerate(CLIENTS):
            with Talk(client, broker.address) as talk:
                commit_values(talk.transactional(client.name), (topic, number), [b"x"] * 5)
                talk.consumer(group=client.name).commit({(topic, number): number + 1})
        broker.restart(kill=kill)
        for number, client in enumerate(CLIENTS):
            with Talk(client, broker.address) as talk:
                consumer = talk.consumer(group=client.name)
                assert consumer.committed([(topic, number)]) == {(topic, number): number + 1}
                member = talk.member(topic, client.name)
                eventually(partial(member.has_found, 14 - number))
                assert next(each for each in member.found if each.partition == number).offset == number + 1
        broker.ensure_no_traceback()


def test_members_find_their_way_back_after_a_restart(tmp_path: Path, topic: str) -> None:
    """Members of all clients read on by themselves."""
    with (
        BrokerProcess(tmp_path, "plain.enabled=false") as broker,
        contextlib.ExitStack() as stack,
    ):
        talks = [stack.enter_context(Talk(client, broker.address)) for client in CLIENTS]
        create_topic(broker.address, topic)
        members = [talk.member(topic, f"{topic}-{talk.client.name}") for talk in talks]
        eventually(lambda: all(member.share for member in members))
        broker.restart()
        commit_values(talks[0].transactional(topic), (topic, 0), [b"after"])
        eventually(lambda: all(member.values == [b"after"] for member in members))


def test_a_group_of_all_clients(broker: BrokerProcess, topic: str) -> None:
    """Members of three libraries in one group: they agree on the strategy that all have."""
    with contextlib.ExitStack() as stack:
        talks = [stack.enter_context(Talk(client, broker.address)) for client in CLIENTS]
        fill(talks[0], topic)
        members = [talk.member(topic, topic, strategy="range") for talk in talks]
        eventually(lambda: are_sharing(*members))
        assert [len(member.share) for member in members] == [2, 2, 2]
        eventually(lambda: sum(len(member.found) for member in members) >= PARTITIONS * 10)


def test_offsets_of_a_deleted_topic_are_forgotten(talk: Talk, topic: str) -> None:
    """As in Kafka: a topic that is made again does not begin with offsets of its forerunner's messages."""
    create_topic(talk.address, topic)
    other = f"{topic}-other"
    create_topic(talk.address, other)
    consumer = talk.consumer(group=topic)
    consumer.assign({(topic, 0): 0, (other, 0): 0})
    consumer.commit({(topic, 0): 5, (other, 0): 6})
    talk.close(consumer)  # or it makes the topic again itself
    delete_topic(talk.address, topic)
    create_topic(talk.address, topic)
    assert talk.consumer(group=topic).committed([(topic, 0), (other, 0)]) == {(topic, 0): None, (other, 0): 6}


def test_offsets_of_a_deleted_topic_stay_forgotten_after_a_crash(fresh_broker: BrokerProcess) -> None:
    create_topic(fresh_broker.address, "doomed")
    with Talk(CLIENTS[0], fresh_broker.address) as talk:
        talk.consumer(group="g").commit({("doomed", 0): 5})
        delete_topic(fresh_broker.address, "doomed")
    fresh_broker.restart()
    create_topic(fresh_broker.address, "doomed")
    with Talk(CLIENTS[0], fresh_broker.address) as talk:
        assert talk.consumer(group="g").committed([("doomed", 0)]) == {("doomed", 0): None}


def test_offsets_of_empty_groups_expire(broker: BrokerProcess, topic: str) -> None:
    """offsets.retention.ms: those of a group without members go, those of one with a member stay."""
    create_topic(broker.address, topic)
    place = (topic, 0)
    alive, idle = f"{topic}-alive", f"{topic}-idle"
    with Talk(CLIENTS[0], broker.address) as talk:
        member = talk.member(topic, alive)
        eventually(lambda: member.share)
        member.do(lambda: member.consumer.commit({place: 1}))
        other = talk.consumer(group=idle)
        other.commit({place: 1})
        assert other.committed([place]) == {place: 1}
        with retention(broker):
            eventually(lambda: other.committed([place]) == {place: None})
            assert member.do(lambda: member.consumer.committed([place])) == {place: 1}
            # From when it is empty on, its time runs.
            talk.close(member)
            eventually(lambda: has_no_offset(alive, broker, topic))
    assert has_no_offset(alive, broker, topic)
    assert has_no_offset(idle, broker, topic)


@contextlib.contextmanager
def retention(broker: BrokerProcess) -> Iterator[None]:
    """Restart a broker that forgets soon; it remembers again when this ends."""
    before, broker.settings = broker.settings, (*broker.settings, *SHORT)
    broker.restart()
    yield
    broker.settings = before
    broker.restart()


def test_empty_groups_without_offsets_expire(broker: BrokerProcess, topic: str) -> None:
    """A group that had members but no offsets stays Empty for offsets.retention.ms, restarts included."""
    create_topic(broker.address, topic)
    with Talk(CLIENTS[0], broker.address) as talk:
        member = talk.member(topic, topic)
        eventually(lambda: member.share)
        talk.close(member)
    eventually(lambda: state_of(topic, broker) == ("Empty", "consumer"))
    # In order: what a client is told of a group may not be durable yet.
    broker.restart(kill=False)
    assert state_of(topic, broker) == ("Empty", "consumer")
    with retention(broker):
        eventually(lambda: state_of(topic, broker) == ("Dead", ""))
    assert state_of(topic, broker) == ("Dead", "")


def state_of(group: str, broker: BrokerProcess) -> tuple[str, str]:
    """A group's state and protocol type, as DescribeGroups shows them."""
    with BrokerConnection(broker.address) as connection:
        asked = {"groups": [group], "include_authorized_operations": False}
        described = connection.ask(DESCRIBE_GROUPS, 4, asked).groups[0]
    return described.group_state, described.protocol_type


def has_no_offset(group: str, broker: BrokerProcess, topic: str) -> bool:
    """Whether a group has no offset for the topic's first partition."""
    with Talk(CLIENTS[0], broker.address) as talk:
        return talk.consumer(group=group).committed([(topic, 0)]) == {(topic, 0): None}
