"""`faircopy groups`: show consumer groups, and set or delete their offsets."""

from __future__ import annotations

from typing import Any

import click

from faircopy.cli.output import asks_broker, say, show
from faircopy.cli.topics import EARLIEST, LATEST, PartitionsStopped, end_offsets, metadata
from faircopy.client.connection import Connection, ensure_ok
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.subscription import assigned_partitions


@click.group()
def groups() -> None:
    """Show consumer groups, and set or delete their offsets."""


@groups.command(name="list")
@asks_broker
def list_groups(broker: str, as_json: bool) -> None:
    """Show all consumer groups."""
    with Connection(broker) as connection:
        answer = connection.ask(ApiKey.LIST_GROUPS, 4, {"states_filter": []})
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
    with Connection(broker) as connection:
        answer = connection.ask(ApiKey.DESCRIBE_GROUPS, 4, {"groups": [group]})
        described = answer.groups[0]
        ensure_ok(described.error_code, None, f"group {group!r}")
        owners = {
            place: member.client_id
            for member in described.members
            for place in assigned_partitions(member.member_assignment)
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
        say({"group": group, "state": described.group_state, "members": members, "offsets": offsets}, True, "")
        return
    click.echo(f"group {group}: {described.group_state}, {len(described.members)} member(s)")
    show(offsets, False, empty="no offsets committed")


def offset_rows(connection: Connection, group: str, owners: dict[tuple[str, int], str]) -> list[dict[str, Any]]:
    """What a group committed, and how far it is behind."""
    committed = fetch_offsets(connection, group)
    ends: dict[tuple[str, int], int | None] = {}
    for topic in metadata(connection, None):
        if any(name == topic.name for name, _ in {*committed, *owners}):
            ends |= {(topic.name, number): end for number, end in end_offsets(connection, topic, LATEST).items()}
    return [
        {
            "topic": place[0],
            "partition": place[1],
            "offset": committed.get(place),
            "end": ends.get(place),
            "lag": end - committed[place] if (end := ends.get(place)) is not None and place in committed else None,
            "owner": owners.get(place),
        }
        for place in sorted({*committed, *owners})
    ]


def fetch_offsets(connection: Connection, group: str) -> dict[tuple[str, int], int]:
    """All offsets of a group."""
    answer = connection.ask(ApiKey.OFFSET_FETCH, 5, {"group_id": group, "topics": None})
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
@asks_broker
def reset(group: str, topic_name: str, partition: tuple[int, ...], target: str, broker: str, as_json: bool) -> None:
    """Set a group's offsets. It must have no members.

    \b
    Example: faircopy groups reset reports -t orders --to earliest
    """
    if target not in ("earliest", "latest") and not target.isdigit():
        raise click.BadParameter("give earliest, latest, or an offset", param_hint="--to")
    with Connection(broker) as connection:
        (topic,) = metadata(connection, [topic_name])
        wanted = {
            number: offset
            for number, offset in targets(connection, topic, target).items()
            if not partition or number in partition
        }
        if stopped := [number for number, offset in wanted.items() if offset is None]:
            raise PartitionsStopped(topic_name, stopped)
        rows = [{"partition_index": number, "committed_offset": offset} for number, offset in wanted.items()]
        body = {"group_id": group, "member_id": "", "topics": [{"name": topic_name, "partitions": rows}]}
        answer = connection.ask(ApiKey.OFFSET_COMMIT, 6, body)
    for each in answer.topics[0].partitions:
        ensure_ok(each.error_code, None, f"setting {topic_name}-{each.partition_index} of group {group!r}")
    outcome = [{"topic": topic_name, "partition": number, "offset": offset} for number, offset in wanted.items()]
    show(outcome, as_json, empty="nothing to set", title=f"group {group} now begins at")


def targets(connection: Connection, topic: Any, target: str) -> dict[int, int | None]:
    """Where `--to` says, in each partition of a topic; None in one that is stopped."""
    if target.isdigit():
        return {each.partition_index: int(target) for each in topic.partitions}
    return end_offsets(connection, topic, EARLIEST if target == "earliest" else LATEST)


@groups.command()
@click.argument("group")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@asks_broker
def delete(group: str, yes: bool, broker: str, as_json: bool) -> None:
    """Delete a group and its offsets. It must have no members."""
    if not yes and not as_json:
        click.confirm(f"delete group {group} with its offsets?", abort=True)
    with Connection(broker) as connection:
        answer = connection.ask(ApiKey.DELETE_GROUPS, 1, {"groups_names": [group]})
    ensure_ok(answer.results[0].error_code, None, f"deleting group {group!r}")
    say({"deleted": group}, as_json, f"deleted group {group}")
