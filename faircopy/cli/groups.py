"""`faircopy groups`: show consumer groups, and set or delete their offsets."""

from __future__ import annotations

from typing import Any

import click

from faircopy.api.delete_groups import SCHEMA as DELETE_GROUPS
from faircopy.api.describe_groups import SCHEMA as DESCRIBE_GROUPS
from faircopy.api.list_groups import SCHEMA as LIST_GROUPS
from faircopy.api.offset_commit import SCHEMA as OFFSET_COMMIT
from faircopy.api.offset_fetch import SCHEMA as OFFSET_FETCH
from faircopy.cli.output import asks_broker, confirm, note, say, show, yes_option
from faircopy.cli.topics import (
    EARLIEST,
    LATEST,
    PartitionsStopped,
    TopicPartition,
    described_topics,
    end_offsets,
    metadata,
)
from faircopy.client.connection import BrokerConnection, ensure_ok
from faircopy.errors import FaircopyError
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.subscription import assigned_partitions

DEAD = "Dead"  # the state of a group that does not exist


class NoSuchPartition(FaircopyError):
    """A topic has no such partition."""


@click.group()
def groups() -> None:
    """Show consumer groups, and set or delete their offsets."""


@groups.command(name="list")
@asks_broker
def list_groups(broker: str, as_json: bool) -> None:
    """Show all consumer groups."""
    with BrokerConnection(broker) as connection:
        answer = connection.ask(LIST_GROUPS, 4, {"states_filter": []})
    ensure_ok(answer.error_code, None, "listing groups")
    rows = [
        {"group": each.group_id, "state": each.group_state, "protocol": each.protocol_type or None}
        for each in sorted(answer.groups, key=lambda each: str(each.group_id))
    ]
    show(rows, as_json, empty="no consumer groups yet")


@groups.command()
@click.argument("group")
@asks_broker
def describe(group: str, broker: str, as_json: bool) -> None:
    """Show a group's members, offsets and lag."""
    with BrokerConnection(broker) as connection:
        described = known(connection, group)
        owners = {
            partition: member.client_id
            for member in described.members
            for partition in assigned_partitions(member.member_assignment)
        }
        offsets = offset_rows(connection, group, owners)
    if as_json:
        members = [
            {
                "member": each.member_id,
                "client": each.client_id,
                "host": each.client_host,
                "instance": each.group_instance_id,
            }
            for each in described.members
        ]
        say(
            {"group": group, "state": described.group_state, "members": members, "offsets": offsets}, True, ""
        )
        return
    note(f"group {group}: {described.group_state}, {len(described.members)} member(s)")
    show(offsets, False, empty="no offsets committed")


def known(connection: BrokerConnection, group: str) -> Any:
    """The description of an existing group. Raises RequestFailed."""
    described = connection.ask(DESCRIBE_GROUPS, 4, {"groups": [group]}).groups[0]
    is_absent = described.group_state == DEAD and not described.error_code
    code = ErrorCode.GROUP_ID_NOT_FOUND if is_absent else described.error_code
    ensure_ok(code, None, f"group {group!r}")
    return described


def offset_rows(
    connection: BrokerConnection, group: str, owners: dict[TopicPartition, str]
) -> list[dict[str, Any]]:
    """The committed offsets of a group, and its lag."""
    committed = fetch_offsets(connection, group)
    names = sorted({topic for topic, _ in {*committed, *owners}})
    there = [topic for topic in described_topics(connection, names) if not topic.error_code] if names else []
    ends = end_offsets(connection, there, LATEST)
    return [
        {
            "topic": partition[0],
            "partition": partition[1],
            "offset": committed.get(partition),
            "end": ends.get(partition),
            "lag": end - committed[partition]
            if (end := ends.get(partition)) is not None and partition in committed
            else None,
            "owner": owners.get(partition),
        }
        for partition in sorted({*committed, *owners})
    ]


def fetch_offsets(connection: BrokerConnection, group: str) -> dict[TopicPartition, int]:
    """All offsets of a group."""
    answer = connection.ask(OFFSET_FETCH, 5, {"group_id": group, "topics": None})
    ensure_ok(answer.error_code, None, f"offsets of group {group!r}")
    return {
        (topic.name, each.partition_index): each.committed_offset
        for topic in answer.topics
        for each in topic.partitions
    }


@groups.command()
@click.argument("group")
@click.option("-t", "--topic", "topic_name", required=True, help="The topic whose offsets to set.")
@click.option("-p", "--partition", type=int, multiple=True, help="Only these partitions.")
@click.option("--to", "target", required=True, metavar="WHERE", help="earliest, latest, or an offset.")
@click.option("--new", "may_be_new", is_flag=True, help="Create the group if it does not exist.")
@asks_broker
def reset(
    group: str,
    topic_name: str,
    partition: tuple[int, ...],
    target: str,
    may_be_new: bool,
    broker: str,
    as_json: bool,
) -> None:
    """Set a group's offsets. It must have no members.

    \b
    Examples:
      faircopy groups reset reports -t orders --to earliest
      faircopy groups reset audit -t orders --to latest --new
    """
    if target not in ("earliest", "latest") and not is_offset(target):
        raise click.BadParameter("give earliest, latest, or an offset", param_hint="--to")
    with BrokerConnection(broker) as connection:
        if not may_be_new:
            known(connection, group)
        (topic,) = metadata(connection, [topic_name])
        ensure_partitions(topic, partition)
        wanted = {
            number: offset
            for number, offset in targets(connection, topic, target).items()
            if not partition or number in partition
        }
        if stopped := [number for number, offset in wanted.items() if offset is None]:
            raise PartitionsStopped(topic_name, stopped)
        rows = [{"partition_index": number, "committed_offset": offset} for number, offset in wanted.items()]
        body = {"group_id": group, "member_id": "", "topics": [{"name": topic_name, "partitions": rows}]}
        answer = connection.ask(OFFSET_COMMIT, 6, body)
    for each in answer.topics[0].partitions:
        ensure_ok(each.error_code, None, f"setting {topic_name}-{each.partition_index} of group {group!r}")
    outcome = [
        {"topic": topic_name, "partition": number, "offset": offset} for number, offset in wanted.items()
    ]
    if not as_json:
        note(f"group {group} now starts at")
    show(outcome, as_json, empty="")


def is_offset(text: str) -> bool:
    """Whether text is an offset: decimal digits, and below 2^63."""
    return text.isascii() and text.isdigit() and int(text) < 1 << 63


def ensure_partitions(topic: Any, wanted: tuple[int, ...]) -> None:
    """Raise NoSuchPartition if a topic lacks one of these."""
    count = len(topic.partitions)
    if absent := [number for number in wanted if not 0 <= number < count]:
        raise NoSuchPartition(f"topic {topic.name!r} has partitions 0 to {count - 1}, not {absent[0]}")


def targets(connection: BrokerConnection, topic: Any, target: str) -> dict[int, int | None]:
    """The offset that `--to` means in each partition of a topic; None for a stopped partition."""
    if is_offset(target):
        return {each.partition_index: int(target) for each in topic.partitions}
    ends = end_offsets(connection, [topic], EARLIEST if target == "earliest" else LATEST)
    return {number: end for (_, number), end in ends.items()}


@groups.command()
@click.argument("group")
@yes_option
@asks_broker
def delete(group: str, yes: bool, broker: str, as_json: bool) -> None:
    """Delete a group and its offsets. It must have no members."""
    with BrokerConnection(broker) as connection:
        known(connection, group)
        if not yes and not as_json:
            confirm(f"delete group {group} with its offsets?")
        answer = connection.ask(DELETE_GROUPS, 1, {"groups_names": [group]})
    ensure_ok(answer.results[0].error_code, None, f"deleting group {group!r}")
    say({"deleted": group}, as_json, f"deleted group {group}")
