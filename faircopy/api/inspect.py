"""faircopy's own API Inspect: a look inside the broker as JSON, for the command line and for measuring.

It is not advertised, since it is not part of Kafka's protocol.
"""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from faircopy import __version__
from faircopy.errors import FaircopyError
from faircopy.journal.identity import TopicIdPartition
from faircopy.partition.partition import Partition
from faircopy.serving.parts import Parts
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.settings.table import changed_settings
from faircopy.storage.process import memory_bytes, memory_peak_bytes
from faircopy.transactions.joint_group import NO_KEY
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 20000 Inspect 0 flexible 0+
  request
    subject     string
  response
    error_code  int16
    document    string
""")


async def inspect(request: Message, context: Context) -> Body:
    """Inspect. Returns the document of the requested subject, or why there is none."""
    subject = SUBJECTS.get(request.subject)
    if subject is None:
        return {"error_code": ErrorCode.INVALID_REQUEST, "document": json.dumps(list(SUBJECTS))}
    try:
        document = subject(context.parts)
    except FaircopyError as error:
        return {"error_code": ErrorCode.INVALID_CONFIG, "document": str(error)}
    if isinstance(document, Coroutine):
        document = await document
    return {"error_code": ErrorCode.NONE, "document": json.dumps(document)}


def about_broker(parts: Parts) -> dict[str, Any]:
    """Figures of the broker itself."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    partitions = list(parts.hosted.partitions())
    kept = [hosted for hosted in parts.hosted.topics.values() if not hosted.is_deleted_from]
    return {
        "version": __version__,
        "process_id": os.getpid(),
        "uptime_ms": round(parts.clock.monotonic_ms() - parts.ready_ms),
        "durability": parts.settings.durability,
        "data_directory": str(parts.directory.path),
        "listeners": [f"{each.name}://{each.address}" for each in parts.server.listeners],
        "settings": [f"{key}={value}" for key, value in changed_settings(parts.settings).items()],
        "recovery": str(parts.recovery),
        "recovery_ms": round(parts.recovery.duration_ms),
        "incarnation": parts.incarnation,
        "topics": len(parts.hosted.topics),
        "partitions": len(partitions),
        **parts.leadership.about(),
        **about_catalogue(parts),
        "stopped_partitions": [str(each.name) for each in partitions if each.failure is not None],
        "kept_topics": len(kept),
        "kept_bytes": sum(partition.log.size_bytes for hosted in kept for partition in hosted.partitions),
        "open_transactions": sum(len(home.table.transactions) for home in parts.shards.metadata_journals()),
        "drafts_bytes": parts.draft_space.bytes,
        "drafts_max_bytes": parts.draft_space.max_bytes,
        "connections": len(parts.server.admission.connections),
        "requests_in_flight_bytes": parts.server.admission.in_flight_bytes,
        "memory_bytes": memory_bytes(),
        "memory_peak_bytes": memory_peak_bytes(),
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "loop_stalls": parts.stalls.stalls,
        "loop_stall_worst_ms": round(parts.stalls.worst_ms, 3),
    }


def about_catalogue(parts: Parts) -> dict[str, Any]:
    """How far the catalogue's journal has come, and what the next start folds if it comes now."""
    catalogue = parts.catalogue
    end = catalogue.journal.watermarks.appended
    return {
        "catalogue_position": end,
        "catalogue_journal_bytes": end - catalogue.journal.start_position,
        "catalogue_to_replay_bytes": catalogue.bytes_since_checkpoint,
    }


def partitions(parts: Parts) -> list[dict[str, Any]]:
    """The offsets and figures of each partition."""
    return [
        {
            "topic": partition.name.topic,
            "partition": partition.name.partition,
            "start_offset": partition.log.start_offset,
            "end_offset": partition.log.end_offset,
            "decided_offset": partition.state.next_offset,
            "open_transactions": len(partition.state.undecided),
            "journal_bytes": partition.journal.watermarks.appended - partition.journal.start_position,
            "failure": str(partition.failure) if partition.failure else None,
        }
        for partition in parts.hosted.partitions()
    ]


def tables(parts: Parts) -> list[dict[str, Any]]:
    """What each plain table has published. Raises NoArrow."""
    parts.plain_tables.ensure_on()
    return [
        {
            "table": table.name,
            "topics": [topic.topic.name for topic in table.topics],
            "published": sum(table.next_offsets.values()),
            "waiting": sum(
                partition.log.end_offset - table.first_offset(partition) for partition in table.partitions()
            ),
            "skipped": table.skipped,
            "directory": str(table.directory),
        }
        for table in parts.plain_tables.tables.values()
        if table.topics
    ]


def transactions(parts: Parts) -> list[dict[str, Any]]:
    """All transactions that are not over."""
    now_ms = parts.clock.steady_ms()
    partitions = {each.id: each for each in (*parts.hosted.partitions(), *parts.shards.offsets_partitions())}
    found = []
    for home in parts.shards.metadata_journals():
        for transaction in home.table.transactions.values():
            there = [each for one in transaction.participants if (each := partitions.get(one)) is not None]
            here = [partition.state.branch(transaction.id) for partition in there]
            found.append(
                {
                    "id": str(transaction.id),
                    "transactional_id": transaction.transactional_id,
                    "group": home.table.producers[transaction.transactional_id].group,
                    "state": transaction.state.value,
                    "age_ms": now_ms - transaction.started_ms,
                    "timeout_ms": transaction.timeout_ms,
                    "partitions": [name_of(each, partitions) for each in transaction.participants],
                    "messages": sum(each.records for each in here if each is not None),
                    "journaled_bytes": sum(each.size for each in here if each is not None),
                    "metadata_journal": home.number,
                }
            )
    return found


def joint_groups(parts: Parts) -> list[dict[str, Any]]:
    """All joint groups, and how many members write for each."""
    return [
        {
            "group": group.name,
            "run": group.run,
            "committed_key": None if group.committed_key == NO_KEY else group.committed_key,
            "members": len(group.members),
            "metadata_journal": home.number,
        }
        for home in parts.shards.metadata_journals()
        for group in home.table.groups.values()
    ]


async def replicas(parts: Parts) -> dict[str, Any] | None:
    """The replica set that this broker leads; null if it leads by itself."""
    return await parts.leadership.replicas()


def name_of(participant: TopicIdPartition, partitions: Mapping[TopicIdPartition, Partition]) -> str:
    """A participant's name, or its id if its topic is deleted."""
    return str(partitions[participant].name) if participant in partitions else f"{participant} (deleted)"


SUBJECTS: dict[str, Callable[[Parts], Any]] = {
    "broker": about_broker,
    "partitions": partitions,
    "transactions": transactions,
    "tables": tables,
    "joint_groups": joint_groups,
    "replicas": replicas,
}


ROUTE = Route(SCHEMA, inspect, is_advertised=False)
