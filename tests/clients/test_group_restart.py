"""Members of groups while the broker is restarted: they notice nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from faircopy.api.delete_groups import SCHEMA as DELETE_GROUPS
from faircopy.api.describe_groups import SCHEMA as DESCRIBE_GROUPS
from faircopy.api.heartbeat import SCHEMA as HEARTBEAT
from faircopy.client.connection import BrokerConnection
from faircopy.wire.error_codes import ErrorCode
from tests.broker_process import BrokerProcess, eventually
from tests.clients.adapter import Client, Place, Producer
from tests.clients.conftest import CLIENTS
from tests.clients.talk import Member, Talk, commit_values, create_topic

PARTITIONS = 4


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker for each test, which restarts it; its log tells of each new generation."""
    process = BrokerProcess(tmp_path, "plain.enabled=false")
    process.arguments = ("-v",)
    with process:
        yield process
        process.ensure_no_traceback()


def generations(broker: BrokerProcess, group: str) -> int:
    """How many generations the group ever began."""
    return broker.log.count(f"group '{group}' has generation")


def described(address: str, group: str) -> Any:
    """The group as administrators see it."""
    with BrokerConnection(address) as connection:
        asked = {"groups": [group], "include_authorized_operations": False}
        return connection.ask(DESCRIBE_GROUPS, 4, asked).groups[0]


def members_of(address: str, group: str) -> list[tuple[str, str | None, bytes]]:
    """The members of a stable group, with what each is assigned."""
    found = described(address, group)
    assert (found.group_state, found.protocol_type) == ("Stable", "consumer")
    return sorted((m.member_id, m.group_instance_id, bytes(m.member_assignment)) for m in found.members)


def heartbeats(broker: BrokerProcess, group: str) -> list[ErrorCode]:
    """What the members are told that say once more, in the newest generation, that they are alive."""
    (*_, generation) = re.findall(f"group '{group}' has generation ([0-9]+)", broker.log)
    asked = {"group_id": group, "generation_id": int(generation)}
    with BrokerConnection(broker.address) as connection:
        return [
            ErrorCode(
                connection.ask(
                    HEARTBEAT, 3, asked | {"member_id": member_id, "group_instance_id": instance_id}
                ).error_code
            )
            for member_id, instance_id, _ in members_of(broker.address, group)
        ]


def write_to_all(producer: Producer, topic: str, value: bytes) -> None:
    """The same message for each partition."""
    for number in range(PARTITIONS):
        commit_values(producer, (topic, number), [value])


def places_of(member: Member, value: bytes) -> list[Place]:
    """Where a member has found this message."""
    return sorted((each.topic, each.partition) for each in member.found if each.value == value)


def settle(members: list[Member]) -> None:
    """Return when members have heard of all partitions: kafka-python joins again when it first does.

    A member that has a message of each has heard of them, and has joined again by the end of its next poll.
    """
    eventually(lambda: len({place for each in members for place in places_of(each, b"before")}) == PARTITIONS)
    for member in members * 2:
        member.do(lambda: None)


@pytest.mark.parametrize("kill", [False, True], ids=["stop", "kill"])
@pytest.mark.parametrize("is_static", [False, True], ids=["dynamic", "static"])
def test_no_group_rebalances(
    broker: BrokerProcess, client: Client, topic: str, is_static: bool, kill: bool
) -> None:
    create_topic(broker.address, topic, PARTITIONS)
    with Talk(client, broker.address) as talk:
        named: list[dict[str, str]] = [{"instance_id": f"i{n}"} if is_static else {} for n in range(2)]
        members = [talk.member(topic, topic, **name) for name in named]
        eventually(lambda: all(member.share for member in members))
        write_to_all(talk.transactional(topic), topic, b"before")
        settle(members)
        eventually(lambda: described(broker.address, topic).group_state == "Stable")
        eventually(lambda: sum(len(member.share) for member in members) == PARTITIONS)
        before, began = members_of(broker.address, topic), generations(broker, topic)
        shares = [set(member.share) for member in members]
        broker.restart(kill=kill)
        assert members_of(broker.address, topic) == before
        write_to_all(talk.transactional(topic), topic, b"after")
        for member, share in zip(members, shares, strict=True):
            eventually(lambda member=member, share=share: places_of(member, b"after") == sorted(share))  # type: ignore[misc]
            offsets = {(each.topic, each.partition): each.offset + 1 for each in member.found}
            member.do(partial(member.consumer.commit, offsets))
        assert heartbeats(broker, topic) == [ErrorCode.NONE] * 2
        assert [member.share for member in members] == shares
        assert members_of(broker.address, topic) == before
        assert generations(broker, topic) == began


def test_members_that_do_not_come_back_are_missed_after_a_restart(broker: BrokerProcess, topic: str) -> None:
    create_topic(broker.address, topic, PARTITIONS)
    with Talk(CLIENTS[0], broker.address) as talk:
        # As long as it takes to start a broker on a busy machine, and to ask it.
        member = talk.member(topic, topic, session_ms=6_000)
        eventually(lambda: member.share)
        broker.kill()
        talk.close(member)
    broker.start()
    assert members_of(broker.address, topic)
    eventually(lambda: described(broker.address, topic).group_state == "Empty")
    # An orderly stop: what a client is told of a group may not be durable yet. After a kill, the broker
    # would miss the group's members once more.
    broker.restart(kill=False)
    found = described(broker.address, topic)
    assert (found.group_state, found.protocol_type, found.members) == ("Empty", "consumer", [])
    with BrokerConnection(broker.address) as connection:
        assert connection.ask(DELETE_GROUPS, 2, {"groups_names": [topic]}).results[0].error_code == 0
    broker.restart()
    assert described(broker.address, topic).group_state == "Dead"
