"""A simulated consumer of given partitions, which reads on from its positions."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from faircopy.wire.api_keys import ApiKey
from faircopy.wire.batch import HEADER_BYTES, LENGTH_OVERHEAD_BYTES, PLACE, read_header
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import decode_records
from tests.checker.history import Read
from tests.simulation.network import Disconnected, Remote
from tests.simulation.producer import partition_of

PAUSE_SECONDS = 0.1
EARLIEST, LATEST = -2, -1
UNKNOWN_EPOCH = -1
ANSWER_BYTES = 20_000


class SimulatedConsumer:
    """`positions` are the next offsets; `is_committed` chooses the isolation level, which changes nothing
    (P1).

    `seeks` counts how often it had to seek to the start of a log, because its position was deleted.

    Its requests name the leader epoch that it believes current, and the epoch of what it fetched last.
    Whatever happens to the broker, visible messages are never cut off (KIP-320).
    """

    def __init__(self, remote: Remote, partitions: list[str], *, is_committed: bool) -> None:
        self._remote = remote
        self._isolation_level = int(is_committed)
        self.partitions = partitions
        self.positions: dict[str, int] = dict.fromkeys(partitions, 0)
        self.seeks = 0
        self._current_epochs: dict[str, int] = {}
        self._last_epochs: dict[str, int] = {}

    async def poll(self, wait_ms: int = 500) -> list[Read]:
        """The messages that arrive within `wait_ms`. Raises Disconnected."""
        by_topic: dict[str, list[dict[str, Any]]] = {}
        for name in self.partitions:
            topic, number = partition_of(name)
            by_topic.setdefault(topic, []).append(
                {
                    "partition": number,
                    "current_leader_epoch": self._current_epochs.get(name, UNKNOWN_EPOCH),
                    "fetch_offset": self.positions[name],
                    "last_fetched_epoch": self._last_epochs.get(name, UNKNOWN_EPOCH),
                    "partition_max_bytes": ANSWER_BYTES,
                }
            )
        body = {
            "max_wait_ms": wait_ms,
            "min_bytes": 1,
            "max_bytes": ANSWER_BYTES,
            "isolation_level": self._isolation_level,
            "topics": [{"topic": topic, "partitions": rows} for topic, rows in by_topic.items()],
        }
        answer = await self._remote.ask(ApiKey.FETCH, 12, body)
        found: list[Read] = []
        deposed: set[str] = set()
        for topic in answer.responses:
            for partition in topic.partitions:
                name = f"{topic.topic}-{partition.partition_index}"
                if partition.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    self.positions[name] = partition.log_start_offset
                    self._last_epochs.pop(name, None)
                    self.seeks += 1
                elif partition.error_code == ErrorCode.FENCED_LEADER_EPOCH:
                    deposed.add(topic.topic)
                elif partition.error_code == ErrorCode.NONE:
                    assert partition.diverging_epoch is None, f"messages of {name} are cut off: {partition}"
                    found += self._take(name, bytes(partition.records or b""))
        for name in sorted(deposed):
            with contextlib.suppress(Disconnected):  # it is told again; what was read must not be lost
                await self._learn_epoch(name)
        return found

    async def _learn_epoch(self, topic: str) -> None:
        """Learn the leader epochs of a topic's partitions. Raises Disconnected."""
        answer = await self._remote.ask(ApiKey.METADATA, 9, {"topics": [{"name": topic}]})
        for partition in answer.topics[0].partitions:
            name = f"{topic}-{partition.partition_index}"
            assert partition.leader_epoch >= self._current_epochs.get(name, UNKNOWN_EPOCH)
            self._current_epochs[name] = partition.leader_epoch

    def _take(self, name: str, data: bytes) -> list[Read]:
        """The messages from the position on. A batch that is cut at the end is left for the next poll."""
        found = []
        at = 0
        while at + HEADER_BYTES <= len(data):
            size = PLACE.unpack_from(data, at)[1] + LENGTH_OVERHEAD_BYTES
            if at + size > len(data):
                break
            for record in decode_records(data[at : at + size]):
                if record.offset >= self.positions[name]:
                    assert record.value is not None
                    found.append(Read(name, record.offset, int(record.value)))
                    self.positions[name] = record.offset + 1
            self._last_epochs[name] = epoch = read_header(data, at).leader_epoch
            self._current_epochs[name] = max(self._current_epochs.get(name, UNKNOWN_EPOCH), epoch)
            at += size
        return found

    async def bound(self, name: str, which: int) -> int:
        """The start or the end offset of a partition. Asks until there is an answer."""
        topic, number = partition_of(name)
        body = {
            "isolation_level": 1,
            "topics": [{"name": topic, "partitions": [{"partition_index": number, "timestamp": which}]}],
        }
        while True:
            try:
                answer = (await self._remote.ask(ApiKey.LIST_OFFSETS, 5, body)).topics[0].partitions[0]
            except Disconnected:
                answer = None
            if answer is not None and answer.error_code == ErrorCode.NONE:
                return int(answer.offset)
            await asyncio.sleep(PAUSE_SECONDS)

    async def committed(self, group: str, name: str, *, require_stable: bool = True) -> int:
        """The committed offset of a group, -1 if none. Asks until there is an answer, which is stable if that
        is required.
        """
        topic, number = partition_of(name)
        body = {
            "group_id": group,
            "topics": [{"name": topic, "partition_indexes": [number]}],
            "require_stable": require_stable,
        }
        while True:
            try:
                answer = await self._remote.ask(ApiKey.OFFSET_FETCH, 7, body)
            except Disconnected:
                answer = None
            if answer is not None and answer.error_code == ErrorCode.NONE:
                found = answer.topics[0].partitions[0]
                if found.error_code == ErrorCode.NONE:
                    return int(found.committed_offset)
            await asyncio.sleep(PAUSE_SECONDS)
