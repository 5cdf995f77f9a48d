"""A simulated member of a consumer group: joins, reads its partitions, commits, and rejoins when it must."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import Callable
from typing import Any

from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from tests.checker.history import Read
from tests.simulation.consumer import SimulatedConsumer
from tests.simulation.network import LATE_SECONDS, Disconnected, Remote
from tests.simulation.producer import partition_of

SESSION_TIMEOUT_MS = 6_000
REBALANCE_TIMEOUT_MS = 10_000
PAUSE_SECONDS = 0.2


class Rejoin(Exception):
    """The group goes on without this member's generation: join again. `forget` also drops the member id."""

    def __init__(self, *, forget: bool = False) -> None:
        super().__init__()
        self.forget = forget


class SimulatedMember:
    """One member, of the classic protocol. The leader gives partitions to members in turn."""

    def __init__(self, remote: Remote, group: str, partitions: list[str], chosen: random.Random) -> None:
        self._remote = remote
        self._group = group
        self._partitions = partitions
        self._chosen = chosen
        self._member_id = ""
        self._generation = -1
        self._joins = 0

    async def run_once(
        self,
        is_over: Callable[[], bool],
        given: Callable[[str, list[Read]], None],
        commit: Callable[[dict[str, int]], Callable[[bool], None]],
    ) -> None:
        """Join, and read until the group rebalances or `is_over`.

        `given(assignment, reads)` gets what arrives. `commit(offsets)` is called before offsets are
        committed; the function that it returns is called with whether the broker agreed.
        """
        try:
            mine = await self._join()
            consumer = SimulatedConsumer(self._remote, mine, is_committed=True)
            for name in mine:
                consumer.positions[name] = max(await consumer.committed(self._group, name), 0)
            # A member that rejoins may get the same generation, and starts again at the committed offsets.
            self._joins += 1
            assignment = f"{self._member_id}/{self._generation}/{self._joins}"
            while not is_over():
                await self._heartbeat()
                if not mine:
                    await asyncio.sleep(PAUSE_SECONDS)
                    continue
                reads = await consumer.poll(200)
                if reads:
                    given(f"{assignment}/{consumer.seeks}", reads)
                    await self._commit({read.partition: read.offset + 1 for read in reads}, commit)
            await self._leave()
        except Rejoin as rejoin:
            if rejoin.forget:
                self._member_id = ""
        except Disconnected:
            # Requests on their way may still arrive. A commit that arrives after a newer one would count.
            await asyncio.sleep(LATE_SECONDS)

    async def knock(self) -> None:
        """Ask for a member id, and never come back with it."""
        self._member_id = ""
        with contextlib.suppress(Rejoin, Disconnected):
            await self._join()

    async def _join(self) -> list[str]:
        body = {
            "group_id": self._group,
            "session_timeout_ms": SESSION_TIMEOUT_MS,
            "rebalance_timeout_ms": REBALANCE_TIMEOUT_MS,
            "member_id": self._member_id,
            "protocol_type": "consumer",
            "protocols": [{"name": "turns", "metadata": b""}],
        }
        joined = await self._remote.ask(ApiKey.JOIN_GROUP, 5, body, timeout=REBALANCE_TIMEOUT_MS / 1000 + 5)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
            raise Rejoin
        self._check(joined.error_code)
        self._member_id, self._generation = joined.member_id, joined.generation_id
        members = [member.member_id for member in joined.members]
        synced = await self._remote.ask(
            ApiKey.SYNC_GROUP,
            3,
            self._who() | {"assignments": self._assignments(members)},
            timeout=REBALANCE_TIMEOUT_MS / 1000 + 5,
        )
        self._check(synced.error_code)
        mine: list[str] = json.loads(bytes(synced.assignment) or b"[]")
        return mine

    def _assignments(self, members: list[str]) -> list[dict[str, Any]]:
        """The leader's assignment for each member. Empty for all others, whose list of members is empty."""
        return [
            {"member_id": member, "assignment": json.dumps(self._partitions[number :: len(members)]).encode()}
            for number, member in enumerate(members)
        ]

    def _who(self) -> dict[str, Any]:
        return {"group_id": self._group, "generation_id": self._generation, "member_id": self._member_id}

    def _check(self, code: int) -> None:
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            raise Rejoin(forget=True)
        if code != ErrorCode.NONE:
            raise Rejoin

    async def _heartbeat(self) -> None:
        self._check((await self._remote.ask(ApiKey.HEARTBEAT, 3, self._who())).error_code)

    async def _commit(
        self, offsets: dict[str, int], commit: Callable[[dict[str, int]], Callable[[bool], None]]
    ) -> None:
        topics = [
            {
                "name": partition_of(name)[0],
                "partitions": [{"partition_index": partition_of(name)[1], "committed_offset": offset}],
            }
            for name, offset in offsets.items()
        ]
        told = commit(offsets)
        answer = await self._remote.ask(ApiKey.OFFSET_COMMIT, 7, self._who() | {"topics": topics})
        codes = {partition.error_code for topic in answer.topics for partition in topic.partitions}
        told(codes == {ErrorCode.NONE})
        for code in codes:
            self._check(code)

    async def _leave(self) -> None:
        if self._chosen.random() < 0.5:  # the others only vanish
            await self._remote.ask(
                ApiKey.LEAVE_GROUP, 3, {"group_id": self._group, "members": [{"member_id": self._member_id}]}
            )
