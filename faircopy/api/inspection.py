"""faircopy's own API Inspect: a look inside the broker as JSON, for the command line and for measuring."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faircopy import __version__
from faircopy.api.context import Body, Context, Message
from faircopy.journal.identity import TopicIdPartition
from faircopy.partition.partition import Partition
from faircopy.settings.table import changed_settings
from faircopy.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from faircopy.broker.broker import Broker


class Inspection:
    """Answers about the broker's inside."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._ready_ms = broker.clock.monotonic_ms()
        self._subjects = {
            "broker": self._about_broker,
            "partitions": self._partitions,
            "transactions": self._transactions,
            "tables": self._tables,
        }

    async def inspect(self, request: Message, context: Context) -> Body:
        """Inspect: one of the subjects."""
        subject = self._subjects.get(request.subject)
        if subject is None:
            return {"error_code": ErrorCode.INVALID_REQUEST, "document": json.dumps(list(self._subjects))}
        return {"error_code": ErrorCode.NONE, "document": json.dumps(subject())}

    def _about_broker(self) -> dict[str, Any]:
        broker = self._broker
        usage = resource.getrusage(resource.RUSAGE_SELF)
        partitions = list(broker.catalog.partitions())
        return {
            "version": __version__,
            "process_id": os.getpid(),
            "uptime_ms": round(broker.clock.monotonic_ms() - self._ready_ms),
            "durability": broker.settings.durability,
            "data_directory": str(broker.directory.path),
            "listeners": [f"{each.name}://{each.address}" for each in broker.server.listeners],
            "settings": [f"{key}={value}" for key, value in changed_settings(broker.settings).items()],
            "recovery": str(broker.recovery),
            "recovery_ms": round(broker.recovery.duration_ms),
            "incarnation": broker.incarnation,
            "topics": len(broker.catalog.topics),
            "partitions": len(partitions),
            "stopped_partitions": [str(each.name) for each in partitions if each.failure is not None],
            "open_transactions": sum(len(home.table.transactions) for home in broker.coordinator.journals),
            "connections": broker.server.connections,
            "requests_in_flight_bytes": broker.server.in_flight_bytes,
            "memory_bytes": memory_bytes(),
            "memory_peak_bytes": usage.ru_maxrss * 1024,
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "loop_stalls": broker.stalls.stalls,
            "loop_stall_worst_ms": round(broker.stalls.worst_ms, 3),
        }

    def _partitions(self) -> list[dict[str, Any]]:
        return [
            {
                "topic": partition.name.topic,
                "partition": partition.name.partition,
                "start_offset": partition.log.start_offset,
                "end_offset": partition.log.end_offset,
                "decided_offset": partition.state.next_offset,
                "open_transactions": sum(each.is_undecided for each in partition.state.transactions.values()),
                "journal_bytes": partition.journal.next_position - partition.journal.start_position,
                "failure": str(partition.failure) if partition.failure else None,
            }
            for partition in self._broker.catalog.partitions()
        ]

    def _tables(self) -> list[dict[str, Any]]:
        return [
            {
                "table": table.name,
                "topics": [topic.topic.name for topic in table.topics],
                "published": sum(table.next_offsets.values()),
                "waiting": sum(
                    partition.log.end_offset - table.first_offset(partition) for partition in table.partitions()
                ),
                "directory": str(table.directory),
            }
            for table in self._broker.plain_tables.tables.values()
            if table.topics
        ]

    def _transactions(self) -> list[dict[str, Any]]:
        broker, now_ms = self._broker, self._broker.clock.steady_ms()
        partitions = {each.id: each for each in (*broker.catalog.partitions(), *broker.offsets.partitions)}
        found = []
        for home in broker.coordinator.journals:
            for transaction in home.table.transactions.values():
                there = [each for one in transaction.participants if (each := partitions.get(one)) is not None]
                here = [partition.state.transactions.get(transaction.id) for partition in there]
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


def name_of(participant: TopicIdPartition, partitions: Mapping[TopicIdPartition, Partition]) -> str:
    """A participant's name, or its id, if its topic is deleted."""
    return str(partitions[participant].name) if participant in partitions else f"{participant} (deleted)"


def memory_bytes() -> int | None:
    """What this process has in memory now; None where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError):
        return None
    return pages * resource.getpagesize()
