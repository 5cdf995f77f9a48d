"""What administrators' requests do to a broker, one after the other: a dumb model of a few topics and groups.

A request is here an object that knows how it is asked, and what the model answers. Topics are told apart by
whether they are those of the beginning, since the ids of new ones are drawn.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from faircopy.api.alter_configs import alter_configs
from faircopy.api.backup import backup
from faircopy.api.create_partitions import create_partitions
from faircopy.api.create_topics import create_topics
from faircopy.api.delete_groups import delete_groups
from faircopy.api.delete_records import HIGH_WATERMARK, delete_records
from faircopy.api.delete_topics import delete_topics
from faircopy.api.forget_transaction_group import forget_transaction_group
from faircopy.api.incremental_alter_configs import incremental_alter_configs
from faircopy.api.offset_commit import offset_commit
from faircopy.api.offset_delete import offset_delete
from faircopy.hosting.snapshots import claim
from faircopy.serving.config_resources import BROKER, SET, TOPIC
from faircopy.storage.system import mounted
from faircopy.wire.error_codes import ErrorCode

Answer = tuple[Any, ...]
OK = (ErrorCode.NONE,)
BUSY = (ErrorCode.KAFKA_STORAGE_ERROR,)
MESSAGES = 3
"""In each partition of the beginning."""
TICKS_UNTIL_LOCKED = 3
"""Of the loop, between the answer to a backup and its lock."""


@dataclass
class ModelTopic:
    """`starts` are the first offsets that DeleteRecords has left, of the partitions that it concerned."""

    is_first: bool
    partitions: int
    configs: dict[str, str] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)


@dataclass
class Model:
    """`groups` have the committed offsets of each group; `snapshot` the partitions that one has, and
    `backup_of` the side whose backup it is for. `side` is who asks.
    """

    topics: dict[str, ModelTopic]
    groups: dict[str, dict[tuple[str, int], int]]
    joint_groups: set[str]
    broker_settings: dict[str, str] = field(default_factory=dict)
    snapshot: list[tuple[str, bool, int]] | None = None
    backup_of: int | None = None
    side: int = 0

    def places(self) -> list[tuple[str, bool, int]]:
        """All partitions."""
        return sorted(
            (name, topic.is_first, number)
            for name, topic in self.topics.items()
            for number in range(topic.partitions)
        )


class Request(NamedTuple):
    """`handler` answers `body` with something from which `read` takes what counts, given whether a topic's id
    is one of the beginning. `model` does the same to the model. A request that `may_be_busy` may refuse
    because of another one that is under way, if it then changes nothing.
    """

    handler: Callable[[Any, Any], Awaitable[dict[str, Any]]]
    body: Callable[[Mapping[str, bytes]], Any]
    read: Callable[[dict[str, Any], Callable[[bytes], bool]], Answer]
    model: Callable[[Model], Answer]
    may_be_busy: bool = False

    @property
    def is_about_backups(self) -> bool:
        """Whether it is in the way of a backup that begins at the same time."""
        return self.handler in (begin, end)


def tree(value: Any) -> Any:
    """The message with these fields."""
    if isinstance(value, dict):
        return SimpleNamespace(**{name: tree(each) for name, each in value.items()})
    return [tree(each) for each in value] if isinstance(value, list) else value


def always(body: dict[str, Any]) -> Callable[[Mapping[str, bytes]], Any]:
    """A body that needs no topic's id."""
    return lambda _ids: tree(body)


# -- topics --------------------------------------------------------------------------------------------------


def make_topic(name: str, partitions: int) -> Request:
    """CreateTopics."""
    asked = {"name": name, "num_partitions": partitions, "replication_factor": -1, "assignments": [],
             "configs": []}  # fmt: skip

    def model(state: Model) -> Answer:
        if name in state.topics:
            return (ErrorCode.TOPIC_ALREADY_EXISTS,)
        state.topics[name] = ModelTopic(is_first=False, partitions=partitions)
        return OK

    body = always({"topics": [asked], "validate_only": False})
    return Request(create_topics, body, lambda answer, _: (answer["topics"][0]["error_code"],), model)


def drop(state: Model, name: str) -> Answer:
    """What the deletion of a topic does to the model."""
    topic = state.topics.pop(name)
    for group, offsets in list(state.groups.items()):
        state.groups[group] = {place: offset for place, offset in offsets.items() if place[0] != name}
        if not state.groups[group]:
            del state.groups[group]
    return (ErrorCode.NONE, topic.is_first)


def read_deletion(answer: dict[str, Any], is_first: Callable[[bytes], bool]) -> Answer:
    """The code, and of which topic it is."""
    found = answer["responses"][0]
    code = found["error_code"]
    return (code,) if code else (code, is_first(found["topic_id"]))


def delete_topic(name: str) -> Request:
    """DeleteTopics, by name."""

    def model(state: Model) -> Answer:
        return drop(state, name) if name in state.topics else (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,)

    body = always({"topics": None, "topic_names": [name]})
    return Request(delete_topics, body, read_deletion, model)


def delete_first_topic_by_id(name: str) -> Request:
    """DeleteTopics, by the id that the topic had in the beginning."""

    def model(state: Model) -> Answer:
        is_there = name in state.topics and state.topics[name].is_first
        return drop(state, name) if is_there else (ErrorCode.UNKNOWN_TOPIC_ID,)

    def body(ids: Mapping[str, bytes]) -> Any:
        return tree({"topics": [{"name": None, "topic_id": ids[name]}], "topic_names": None})

    return Request(delete_topics, body, read_deletion, model)


def grow(name: str, partitions: int) -> Request:
    """CreatePartitions."""

    def model(state: Model) -> Answer:
        if name not in state.topics:
            return (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,)
        if partitions <= state.topics[name].partitions:
            return (ErrorCode.INVALID_PARTITIONS,)
        state.topics[name].partitions = partitions
        return OK

    asked = {"name": name, "count": partitions, "assignments": None}
    body = always({"topics": [asked], "validate_only": False})
    return Request(create_partitions, body, lambda answer, _: (answer["results"][0]["error_code"],), model)


# -- settings ------------------------------------------------------------------------------------------------


def change_settings(kind: int, name: str, settings: dict[str, str], *, replaces: bool) -> Request:
    """AlterConfigs (`replaces`), or IncrementalAlterConfigs."""
    configs = [{"name": key, "value": value, "config_operation": SET} for key, value in settings.items()]

    def model(state: Model) -> Answer:
        if kind == TOPIC and name not in state.topics:
            return (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,)
        changed = state.topics[name].configs if kind == TOPIC else state.broker_settings
        if replaces:
            changed.clear()
        changed.update(settings)
        return OK

    body = always({
        "resources": [{"resource_type": kind, "resource_name": name, "configs": configs}],
        "validate_only": False,
    })  # fmt: skip
    handler = alter_configs if replaces else incremental_alter_configs
    return Request(handler, body, lambda answer, _: (answer["responses"][0]["error_code"],), model)


# -- records -------------------------------------------------------------------------------------------------


def trim(name: str, number: int, offset: int) -> Request:
    """DeleteRecords."""

    def model(state: Model) -> Answer:
        topic = state.topics.get(name)
        if topic is None or number >= topic.partitions:
            return (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        end = MESSAGES if topic.is_first and number == 0 else 0
        wanted = end if offset == HIGH_WATERMARK else offset
        if wanted > end:
            return (-1, ErrorCode.OFFSET_OUT_OF_RANGE)
        start = max(wanted, topic.starts.get(number, 0))
        if start:
            topic.starts[number] = start
        return (start, ErrorCode.NONE)

    def read(answer: dict[str, Any], _: Callable[[bytes], bool]) -> Answer:
        found = answer["topics"][0]["partitions"][0]
        return (found["low_watermark"], found["error_code"])

    body = always({"topics": [{"name": name, "partitions": [{"partition_index": number, "offset": offset}]}]})
    return Request(delete_records, body, read, model)


# -- groups --------------------------------------------------------------------------------------------------


def delete_group(name: str) -> Request:
    """DeleteGroups."""

    def model(state: Model) -> Answer:
        return OK if state.groups.pop(name, None) is not None else (ErrorCode.GROUP_ID_NOT_FOUND,)

    body = always({"groups_names": [name]})
    return Request(delete_groups, body, lambda answer, _: (answer["results"][0]["error_code"],), model)


def delete_offsets(group: str, *topics: str) -> Request:
    """OffsetDelete, for the first partitions of these topics."""

    def model(state: Model) -> Answer:
        if group not in state.groups:
            return (ErrorCode.GROUP_ID_NOT_FOUND,)
        for topic in topics:
            state.groups[group].pop((topic, 0), None)
        if not state.groups[group]:
            del state.groups[group]
        return OK

    asked = [{"name": topic, "partitions": [{"partition_index": 0}]} for topic in topics]
    body = always({"group_id": group, "topics": asked})
    return Request(offset_delete, body, lambda answer, _: (answer["error_code"],), model)


def commit_offset(group: str, topic: str, offset: int) -> Request:
    """OffsetCommit, by a client that is no member, for the first partition of a topic."""

    def model(state: Model) -> Answer:
        if topic not in state.topics:
            return (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,)
        state.groups.setdefault(group, {})[topic, 0] = offset
        return OK

    def read(answer: dict[str, Any], _: Callable[[bytes], bool]) -> Answer:
        return (answer["topics"][0]["partitions"][0]["error_code"],)

    place = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1,
             "committed_metadata": ""}  # fmt: skip
    body = always({"group_id": group, "generation_id_or_member_epoch": -1, "generation_id": -1,
                   "member_id": "", "group_instance_id": None,
                   "topics": [{"name": topic, "partitions": [place]}]})  # fmt: skip
    return Request(offset_commit, body, read, model)


def forget_joint_group(name: str) -> Request:
    """ForgetTransactionGroup."""

    def model(state: Model) -> Answer:
        state.joint_groups.discard(name)
        return OK

    body = always({"group": name})
    return Request(forget_transaction_group, body, lambda answer, _: (answer["error_code"],), model)


# -- backups -------------------------------------------------------------------------------------------------


@wraps(backup)
async def begin(request: Any, context: Any) -> dict[str, Any]:
    """Begin a backup, and take its lock some time later."""
    answer = await backup(request, context)
    if not answer["error_code"]:
        for _ in range(TICKS_UNTIL_LOCKED):
            await asyncio.sleep(0)
        document = json.loads(answer["document"])
        context.backup = document["snapshot"], claim(Path(document["directory"]))
    return answer


@wraps(backup)
async def end(_request: Any, context: Any) -> dict[str, Any]:
    """End the backup that this administrator began; if it was refused, one that does not exist."""
    snapshot, lock = context.backup or ("?", None)
    if lock is not None:
        mounted().close(lock)
    return await backup(tree({"step": "end", "snapshot": snapshot}), context)


def begin_backup() -> Request:
    """Backup."""

    def model(state: Model) -> Answer:
        if state.snapshot is not None:
            return BUSY
        state.snapshot, state.backup_of = state.places(), state.side
        return OK

    body = always({"step": "begin", "snapshot": None})
    return Request(begin, body, lambda answer, _: (answer["error_code"],), model, may_be_busy=True)


def end_backup() -> Request:
    """The end of a backup."""

    def model(state: Model) -> Answer:
        if state.backup_of == state.side:
            state.snapshot = state.backup_of = None
        return OK

    return Request(end, always({}), lambda answer, _: (answer["error_code"],), model)


SIDES: dict[str, tuple[Request, ...]] = {
    "make c": (make_topic("c", 1),),
    "make c with 2": (make_topic("c", 2),),
    "make a": (make_topic("a", 2),),
    "delete a": (delete_topic("a"),),
    "delete a by id": (delete_first_topic_by_id("a"),),
    "make a again": (delete_topic("a"), make_topic("a", 2)),
    "grow a to 2": (grow("a", 2),),
    "grow a to 3": (grow("a", 3),),
    "change a": (change_settings(TOPIC, "a", {"retention.ms": "1000000"}, replaces=False),),
    "change more of a": (change_settings(TOPIC, "a", {"segment.bytes": "20000000"}, replaces=False),),
    "set all of a": (change_settings(TOPIC, "a", {"max.message.bytes": "20000"}, replaces=True),),
    "change brokers": (change_settings(BROKER, "", {"fetch.max.bytes": "5000000"}, replaces=False),),
    "set all of brokers": (change_settings(BROKER, "", {"plain.grace.ms": "70000"}, replaces=True),),
    "trim a": (trim("a", 0, 1),),
    "trim all of a": (trim("a", 0, HIGH_WATERMARK),),
    "delete readers": (delete_group("readers"),),
    "delete offsets of a": (delete_offsets("readers", "a"),),
    "delete offsets of a and b": (delete_offsets("readers", "a", "b"),),
    "commit an offset of a": (commit_offset("readers", "a", 2),),
    "commit an offset of a for others": (commit_offset("others", "a", 2),),
    "forget loader": (forget_joint_group("loader"),),
    "begin a backup": (begin_backup(),),
    "make a backup": (begin_backup(), end_backup()),
}
"""What two administrators do at once. Each does it in this order."""
