"""`faircopy topics`: create, show, change and delete topics."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

import click

from faircopy.api.create_partitions import SCHEMA as CREATE_PARTITIONS
from faircopy.api.create_topics import SCHEMA as CREATE_TOPICS
from faircopy.api.delete_topics import SCHEMA as DELETE_TOPICS
from faircopy.api.describe_configs import SCHEMA as DESCRIBE_CONFIGS
from faircopy.api.describe_log_dirs import SCHEMA as DESCRIBE_LOG_DIRS
from faircopy.api.incremental_alter_configs import SCHEMA as INCREMENTAL_ALTER_CONFIGS
from faircopy.api.list_offsets import SCHEMA as LIST_OFFSETS
from faircopy.api.metadata import SCHEMA as METADATA
from faircopy.catalogue.topic_configs import WITHOUT_EFFECT, is_deleted_from
from faircopy.cli.columns import size
from faircopy.cli.output import asks_broker, confirm, note, say, show, yes_option
from faircopy.client.connection import BrokerConnection, ensure_ok
from faircopy.client.errors import ConnectionFailed, RequestFailed
from faircopy.errors import FaircopyError
from faircopy.wire.error_codes import ErrorCode

TOPIC_RESOURCE = 2
SET, DELETE = 0, 1
LATEST, EARLIEST = -1, -2
TIMEOUT_MS = 30_000
PARTITIONS_PER_REQUEST = 1_000
KEPT = (
    "cleanup.policy=compact: all messages stay, since faircopy does not compact yet, and retention.* do not "
    "apply. That is {} by now, which grows with each message; whoever restores state reads all of it."
)

TopicPartition = tuple[str, int]  # topic and partition


class PartitionsStopped(FaircopyError):
    """The broker neither reads nor writes some partitions: their files are damaged or their disk failed."""

    def __init__(self, topic: str, partitions: Iterable[int]) -> None:
        names = ", ".join(f"{topic}-{number}" for number in sorted(partitions))
        super().__init__(
            f"stopped by the broker: {names}. Files there are damaged, or could not be read or written: the "
            f"broker's log says which. All other partitions go on"
        )


@click.group()
def topics() -> None:
    """Create, show, change and delete topics."""


def parse_settings(texts: tuple[str, ...]) -> list[tuple[str, str]]:
    """KEY=VALUE pairs."""
    pairs = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r}: give KEY=VALUE")
        pairs.append((key.strip(), value.strip()))
    return pairs


def described_topics(connection: BrokerConnection, names: Sequence[str] | None) -> list[Any]:
    """Metadata of topics, each with an error code; asking does not create a topic."""
    asked = None if names is None else [{"name": name} for name in names]
    answer = connection.ask(METADATA, 9, {"topics": asked, "allow_auto_topic_creation": False})
    return list(answer.topics)


def metadata(connection: BrokerConnection, names: Sequence[str] | None) -> list[Any]:
    """Metadata of existing topics. Raises RequestFailed."""
    found = described_topics(connection, names)
    absent = [topic.name for topic in found if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    if absent:
        ensure_ok(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, f"topic {', '.join(map(repr, absent))}")
    for topic in found:
        ensure_ok(topic.error_code, None, f"topic {topic.name!r}")
    return found


def end_offsets(
    connection: BrokerConnection, topics: Iterable[Any], which: int
) -> dict[TopicPartition, int | None]:
    """First (EARLIEST) or end (LATEST) offsets of topics' partitions; None for a stopped partition."""
    found: dict[TopicPartition, int | None] = {}
    for asked in batches(topics, which):
        answer = connection.ask(LIST_OFFSETS, 5, {"topics": asked, "isolation_level": 0})
        for topic in answer.topics:
            for each in topic.partitions:
                is_stopped = each.error_code == ErrorCode.KAFKA_STORAGE_ERROR
                if not is_stopped:
                    ensure_ok(each.error_code, None, f"partition {topic.name}-{each.partition_index}")
                found[topic.name, each.partition_index] = None if is_stopped else each.offset
    return found


def batches(topics: Iterable[Any], which: int) -> Iterator[list[dict[str, Any]]]:
    """The topics of each request: one topic in each takes long, all in one would hold up others."""
    asked: list[dict[str, Any]] = []
    partitions = 0
    for topic in topics:
        rows = [{"partition_index": each.partition_index, "timestamp": which} for each in topic.partitions]
        asked.append({"name": topic.name, "partitions": rows})
        partitions += len(rows)
        if partitions >= PARTITIONS_PER_REQUEST:
            yield asked
            asked, partitions = [], 0
    if asked:
        yield asked


def raise_if_stopped(broker: str, topic: str, partitions: Container[int] | None = None) -> None:
    """Raise PartitionsStopped if one of these partitions (None: of all) is stopped: Kafka clients only keep
    asking it silently.

    Clients report other errors themselves, or wait for them to pass, so nothing else is raised here.
    """
    try:
        with BrokerConnection(broker) as connection:
            ends = end_offsets(connection, metadata(connection, [topic]), LATEST)
    except (ConnectionFailed, RequestFailed):
        return
    stopped = [
        number
        for (_, number), end in ends.items()
        if end is None and (partitions is None or number in partitions)
    ]
    if stopped:
        raise PartitionsStopped(topic, stopped)


@topics.command()
@click.argument("name")
@click.option(
    "-p", "--partitions", type=int, default=-1, help="Number of partitions.  [default: the broker's]"
)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of the topic.")
@asks_broker
def create(name: str, partitions: int, settings: tuple[str, ...], broker: str, as_json: bool) -> None:
    """Create a topic.

    \b
    Example: faircopy topics create orders -p 4 --set retention.ms=3600000
    """
    configs = [{"name": key, "value": value} for key, value in parse_settings(settings)]
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": -1,
        "assignments": [],
        "configs": configs,
    }
    with BrokerConnection(broker) as connection:
        answer = connection.ask(CREATE_TOPICS, 5, {"topics": [topic], "timeout_ms": TIMEOUT_MS})
    made = answer.topics[0]
    ensure_ok(made.error_code, made.error_message, f"making topic {name!r}")
    outcome = {"topic": name, "partitions": made.num_partitions}
    say(outcome, as_json, f"created topic {name} with {made.num_partitions} partition(s)")


@topics.command(name="list")
@asks_broker
def list_topics(broker: str, as_json: bool) -> None:
    """Show all topics."""
    with BrokerConnection(broker) as connection:
        # A topic that was deleted meanwhile is left out.
        found = [topic for topic in described_topics(connection, None) if not topic.error_code]
        first, end = end_offsets(connection, found, EARLIEST), end_offsets(connection, found, LATEST)
    rows = [row_of(topic, first, end) for topic in sorted(found, key=lambda each: str(each.name))]
    show(rows, as_json, empty="no topics yet: faircopy topics create NAME creates one")


def row_of(
    topic: Any, first: dict[TopicPartition, int | None], end: dict[TopicPartition, int | None]
) -> dict[str, Any]:
    """A topic as a row of the table; messages of stopped partitions are not counted."""
    partitions = [(topic.name, each.partition_index) for each in topic.partitions]
    counts = [
        None if (last := end[partition]) is None else last - (first[partition] or 0)
        for partition in partitions
    ]
    return {
        "topic": topic.name,
        "partitions": len(partitions),
        "stopped": counts.count(None),
        "messages": sum(filter(None, counts)),
    }


@topics.command()
@click.argument("name")
@asks_broker
def describe(name: str, broker: str, as_json: bool) -> None:
    """Show a topic's partitions and settings: without --json, only those that have an effect or were set."""
    with BrokerConnection(broker) as connection:
        found = metadata(connection, [name])
        first, end = end_offsets(connection, found, EARLIEST), end_offsets(connection, found, LATEST)
        sizes = log_sizes(connection, name, [number for _, number in first])
        settings = describe_settings(connection, name)
    rows = [
        {
            "partition": number,
            "stopped": last is None,
            "first_offset": first[name, number],
            "end_offset": last,
            "messages": last - begin
            if last is not None and (begin := first[name, number]) is not None
            else None,
            "bytes": sizes.get(number),
        }
        for (_, number), last in sorted(end.items())
    ]
    never_deletes = not is_deleted_from({row["setting"]: row["value"] for row in settings})
    if as_json:
        about = {"topic": name, "partitions": rows, "never_deletes": never_deletes, "settings": settings}
        say(about, True, "")
        return
    note(f"topic {name}")
    show(rows, False, empty="")
    if never_deletes:
        note(KEPT.format(size(sum(sizes.values()))))
    click.echo()
    show(
        [row for row in settings if row["own"] or not row["meaning"].startswith(WITHOUT_EFFECT)],
        False,
        empty="",
    )


def log_sizes(connection: BrokerConnection, name: str, partitions: list[int]) -> dict[int, int]:
    """Bytes of each partition's log."""
    answer = connection.ask(DESCRIBE_LOG_DIRS, 2, {"topics": [{"topic": name, "partitions": partitions}]})
    return {
        partition.partition_index: partition.partition_size
        for directory in answer.results
        for topic in directory.topics
        for partition in topic.partitions
    }


def describe_settings(connection: BrokerConnection, name: str) -> list[dict[str, Any]]:
    """A topic's settings, and whether each was set for it."""
    resource = {"resource_type": TOPIC_RESOURCE, "resource_name": name, "configuration_keys": None}
    answer = connection.ask(DESCRIBE_CONFIGS, 3, {"resources": [resource], "include_documentation": True})
    result = answer.results[0]
    ensure_ok(result.error_code, result.error_message, f"settings of topic {name!r}")
    return [
        {
            "setting": each.name,
            "value": each.value,
            "own": each.config_source == 1,
            "meaning": each.documentation,
        }
        for each in result.configs
    ]


@topics.command()
@click.argument("name")
@click.option("-p", "--partitions", type=int, help="New number of partitions; only more than now.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set a setting.")
@click.option("--unset", "unset", multiple=True, metavar="KEY", help="Give a setting its default back.")
@asks_broker
def alter(
    name: str,
    partitions: int | None,
    settings: tuple[str, ...],
    unset: tuple[str, ...],
    broker: str,
    as_json: bool,
) -> None:
    """Change a topic's settings or number of partitions."""
    changes = [
        {"name": key, "config_operation": SET, "value": value} for key, value in parse_settings(settings)
    ]
    changes += [{"name": key, "config_operation": DELETE, "value": None} for key in unset]
    if not changes and partitions is None:
        raise click.UsageError("nothing to change: give --partitions, --set or --unset")
    with BrokerConnection(broker) as connection:
        if partitions is not None:
            grow(connection, name, partitions)
        if changes:
            resource = {"resource_type": TOPIC_RESOURCE, "resource_name": name, "configs": changes}
            answer = connection.ask(INCREMENTAL_ALTER_CONFIGS, 0, {"resources": [resource]})
            result = answer.responses[0]
            ensure_ok(result.error_code, result.error_message, f"changing topic {name!r}")
    say({"topic": name, "changed": True}, as_json, f"changed topic {name}")


def grow(connection: BrokerConnection, name: str, partitions: int) -> None:
    """Give a topic more partitions."""
    topic = {"name": name, "count": partitions, "assignments": None}
    answer = connection.ask(CREATE_PARTITIONS, 1, {"topics": [topic], "timeout_ms": TIMEOUT_MS})
    result = answer.results[0]
    ensure_ok(result.error_code, result.error_message, f"growing topic {name!r}")


@topics.command()
@click.argument("names", nargs=-1, required=True)
@yes_option
@asks_broker
def delete(names: tuple[str, ...], yes: bool, broker: str, as_json: bool) -> None:
    """Delete topics with all their messages and plain tables; if one of them does not exist, delete none."""
    with BrokerConnection(broker) as connection:
        metadata(connection, names)
        if not yes and not as_json:
            confirm(f"delete {', '.join(names)} with all messages?")
        answer = connection.ask(DELETE_TOPICS, 5, {"topic_names": list(names), "timeout_ms": TIMEOUT_MS})
    failed = [each for each in answer.responses if each.error_code]
    gone = [each.name for each in answer.responses if not each.error_code]
    if gone:
        say({"deleted": gone}, as_json, f"deleted {', '.join(gone)}")
    if failed:
        raise RequestFailed(
            ErrorCode(failed[0].error_code),
            "; ".join(f"topic {each.name!r}: {each.error_message}" for each in failed),
        )
