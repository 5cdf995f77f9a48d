"""A simulated administrator: creates topics and groups, uses them, and deletes them and old records."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import Any

from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch
from tests.checker.history import Read
from tests.simulation.consumer import EARLIEST, LATEST, SimulatedConsumer
from tests.simulation.member import SimulatedMember
from tests.simulation.network import LATE_SECONDS, Disconnected, Remote
from tests.simulation.producer import GaveUp, Refused, SimulatedProducer, partition_of

PAUSE_SECONDS = 0.2
USE_SECONDS = 1.5
USE_PAUSE_SECONDS = 0.02
FOREIGN = -1  # the value that all other clients send to the topic
TOPIC = "short"
PARTITION = "short-0"
GROUP = "fleeting"
GROUP_SECONDS = 3.0


class Administrator:
    """Raises AssertionError if the broker does not do what it said."""

    def __init__(
        self, remote: Remote, neighbour: Remote, chosen: random.Random, now: Callable[[], float]
    ) -> None:
        self._remote = remote
        self._neighbour = neighbour
        self._chosen = chosen
        self._now = now
        self._last_value = 0

    async def _until(
        self,
        api_key: ApiKey,
        version: int,
        body: dict[str, Any],
        code_of: Callable[[Any], int],
        *done: ErrorCode,
    ) -> None:
        """Repeat a request until it is done. The codes `done` say that an earlier try did it."""
        while True:
            try:
                code = code_of(await self._remote.ask(api_key, version, body))
            except Disconnected:
                code = None
            if code == ErrorCode.NONE or code in done:
                return
            await asyncio.sleep(PAUSE_SECONDS)

    # -- topics ----------------------------------------------------------------------------------------------

    async def make_topic(self, name: str, partitions: int, configs: dict[str, str]) -> None:
        topic = {
            "name": name,
            "num_partitions": partitions,
            "replication_factor": -1,
            "assignments": [],
            "configs": [{"name": key, "value": value} for key, value in configs.items()],
        }
        body = {"topics": [topic], "timeout_ms": 10_000, "validate_only": False}
        await self._until(
            ApiKey.CREATE_TOPICS,
            5,
            body,
            lambda answer: int(answer.topics[0].error_code),
            ErrorCode.TOPIC_ALREADY_EXISTS,
        )

    async def live_through_a_topic(self) -> None:
        """A topic that always has the same name holds what was sent since its creation, and nothing older."""
        await self.make_topic(TOPIC, 1, {"plain.enabled": "false"})
        known, perhaps = await self._send_some()
        # Requests on their way may still arrive, and must not reach the next topic of this name.
        await asyncio.sleep(LATE_SECONDS)
        found = [read.value for read in await self._read_all() if read.value != FOREIGN]
        assert set(known) <= set(found) <= set(known) | set(perhaps), (
            f"sent {known}, perhaps {perhaps}: found {found}"
        )
        assert found == sorted(set(found)), f"sent in order and once each: found {found}"
        await self._delete_in_use()
        await asyncio.sleep(LATE_SECONDS)  # nor may this deletion reach the next topic

    async def _delete_in_use(self) -> None:
        """Delete the topic while a client sends to it, in the middle of whatever the broker does for it."""
        sender = asyncio.create_task(self._send_for_ever())
        await asyncio.sleep(self._chosen.random() * USE_SECONDS)
        await self._until(
            ApiKey.DELETE_TOPICS,
            5,
            {"topic_names": [TOPIC], "timeout_ms": 10_000},
            lambda answer: int(answer.responses[0].error_code),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        )
        sender.cancel()

    async def _send_for_ever(self) -> None:
        """Send what counts for nothing."""
        data = {
            "name": TOPIC,
            "partition_data": [{"index": 0, "records": build_batch([NewRecord(b"%d" % FOREIGN)])}],
        }
        body = {"transactional_id": None, "acks": -1, "timeout_ms": 5_000, "topic_data": [data]}
        while True:
            with contextlib.suppress(Disconnected):
                await self._neighbour.ask(ApiKey.PRODUCE, 8, body)
            await asyncio.sleep(self._chosen.random() * USE_PAUSE_SECONDS)

    async def _send_some(self) -> tuple[list[int], list[int]]:
        """The acknowledged values, and those whose result is unknown."""
        producer = SimulatedProducer(self._remote, None, self._chosen)
        known: list[int] = []
        for _ in range(self._chosen.randint(1, 5)):
            self._last_value += 1
            try:
                if not known:
                    await producer.begin_life()
                await producer.send(PARTITION, [self._last_value], 0)
            except (Refused, GaveUp):
                return known, [self._last_value]
            known.append(self._last_value)
        return known, []

    async def _read_all(self) -> list[Read]:
        consumer = SimulatedConsumer(self._remote, [PARTITION], is_committed=False)
        end = await consumer.bound(PARTITION, LATEST)
        reads: list[Read] = []
        while consumer.positions[PARTITION] < end:
            try:
                reads += await consumer.poll()
            except Disconnected:
                await asyncio.sleep(PAUSE_SECONDS)
        return reads

    # -- groups ----------------------------------------------------------------------------------------------

    async def live_through_a_group(self, partitions: list[str]) -> None:
        """A group's committed offsets are gone when the group is deleted."""
        member = SimulatedMember(self._remote, GROUP, partitions, self._chosen)
        until = self._now() + self._chosen.random() * GROUP_SECONDS
        while self._now() < until:
            await member.run_once(
                lambda: self._now() >= until,
                lambda assignment, reads: None,
                lambda offsets: lambda is_done: None,
            )
        await asyncio.sleep(LATE_SECONDS)  # a late commit would count
        await member.knock()
        await self._until(
            ApiKey.DELETE_GROUPS,
            1,
            {"groups_names": [GROUP]},
            lambda answer: int(answer.results[0].error_code),
            ErrorCode.GROUP_ID_NOT_FOUND,
        )
        consumer = SimulatedConsumer(self._remote, partitions, is_committed=True)
        for name in partitions:
            offset = await consumer.committed(GROUP, name)
            assert offset == -1, f"{GROUP} was deleted, but has {name}@{offset}"

    # -- records ---------------------------------------------------------------------------------------------

    async def trim(self, name: str, offset: int) -> None:
        """Delete the records below an offset."""
        topic, number = partition_of(name)
        rows = [{"partition_index": number, "offset": offset}]
        await self._until(
            ApiKey.DELETE_RECORDS,
            1,
            {"topics": [{"name": topic, "partitions": rows}], "timeout_ms": 5_000},
            lambda answer: int(answer.topics[0].partitions[0].error_code),
        )
        start = await SimulatedConsumer(self._remote, [name], is_committed=True).bound(name, EARLIEST)
        assert start >= offset, f"{name} should start at {offset}, but starts at {start}"
