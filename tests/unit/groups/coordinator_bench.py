"""A group coordinator as a client sees it: messages in, messages out, through the codec of the wire."""

from __future__ import annotations

import asyncio
import itertools
import struct
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

from faircopy.api.routes import FLEXIBLE_FROM, ROUTES, schema_of
from faircopy.groups.coordinator import GroupCoordinator
from faircopy.groups.members import GroupLimits, HeldMemory
from faircopy.loop.pace import NO_PACE
from faircopy.serving.route import Context, Route
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.codec import Message
from faircopy.wire.messages import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    read_request_header,
)
from tests.unit.groups.memory_offset_store import MemoryOffsetStore, NamedTopics
from tests.unit.groups.virtual_time import VirtualTime

JOIN: dict[str, Any] = {
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 60_000,
    "member_id": "",
    "protocol_type": "consumer",
}


def subscription(*topics: str) -> bytes:
    """A consumer's metadata, as the classic protocol has it."""
    names = b"".join(struct.pack(">h", len(t)) + t.encode() for t in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


class Broker:
    """A coordinator with virtual time, spoken to in Kafka's messages."""

    def __init__(self, **limits: int) -> None:
        self.numbers = itertools.count(1)
        self.time = VirtualTime()
        self.store = MemoryOffsetStore()
        self.held = HeldMemory()
        self.limits = GroupLimits(**{"initial_rebalance_delay_ms": 0, **limits})
        self.coordinator = self.coordinator_of(self.store)

    def coordinator_of(self, store: MemoryOffsetStore) -> GroupCoordinator:
        """A coordinator of these groups, as each start of a broker makes one."""
        return GroupCoordinator(
            self.limits,
            self.held,
            store,
            self.time.call_later,
            self.time.now_ms,
            fresh_id=lambda: f"fresh{next(self.numbers)}",
            steady_ms=self.time.now_ms,
            topic_ids=NamedTopics(),
        )

    async def ask(self, api_key: ApiKey, version: int, body: dict[str, Any]) -> Message:
        """Send a request over the wire codec, and read the answer as a client would."""
        request = self.request(api_key, version, body)
        answer = await self.handler(api_key, version)(request)
        framed = encode_response(schema_of(api_key), version, 1, answer)
        return decode_response(schema_of(api_key), version, memoryview(framed)[4:])[1]

    def request(self, api_key: ApiKey, version: int, body: dict[str, Any]) -> Message:
        frame = memoryview(encode_request(schema_of(api_key), version, 1, "me", body))[4:]
        return decode_request(
            schema_of(api_key), version, frame, read_request_header(frame, FLEXIBLE_FROM).body_at
        )

    def handler(self, api_key: ApiKey, version: int) -> Callable[[Message], Awaitable[dict[str, Any]]]:
        if api_key == ApiKey.JOIN_GROUP:
            return lambda request: self.coordinator.join_group(request, version, "me", "/10.0.0.1")
        route = ROUTES[api_key]
        assert isinstance(route, Route)
        context = cast(
            Context, SimpleNamespace(version=version, pace=NO_PACE, parts=SimpleNamespace(shards=self))
        )
        return lambda request: route.handle(request, context)

    def groups_of(self, _group: str) -> GroupCoordinator:
        """All groups are in one shard."""
        return self.coordinator

    def __iter__(self) -> Iterator[Any]:
        return iter([SimpleNamespace(groups=self.coordinator)])

    async def join(self, version: int = 3, **changes: Any) -> Message:
        protocols = [{"name": "range", "metadata": subscription("t")}]
        return await self.ask(
            ApiKey.JOIN_GROUP, version, {"group_id": "g", "protocols": protocols, **JOIN, **changes}
        )

    async def sync(
        self, joined: Message, parts: Mapping[str, bytes] | None = None, version: int = 2, **changes: Any
    ) -> Message:
        assignments = [{"member_id": m, "assignment": a} for m, a in (parts or {}).items()]
        named = {"generation_id": joined.generation_id, "member_id": joined.member_id, **changes}
        return await self.ask(
            ApiKey.SYNC_GROUP, version, {"group_id": "g", **named, "assignments": assignments}
        )

    async def stable(self) -> Message:
        """A group "g" of one member; returns the answer to its join."""
        joined = await self.join()
        await self.sync(joined, {joined.member_id: b"all"})
        return joined

    async def commit(self, version: int = 8, offset: int = 5, **changes: Any) -> int:
        """Commit an offset for t-0; returns the partition's error."""
        partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": "m"}
        topics = changes.pop("topics", [{"name": "t", "partitions": [partition]}])
        body = {"group_id": "g", "member_id": "", "topics": topics, **changes}
        answer = await self.ask(ApiKey.OFFSET_COMMIT, version, body)
        error: int = answer.topics[0].partitions[0].error_code
        return error


def run(test: Callable[[Broker], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Make a test of an async function that wants a broker."""

    def wrapper() -> None:
        asyncio.run(test(Broker()))

    wrapper.__name__, wrapper.__doc__ = test.__name__, test.__doc__
    return wrapper


async def settled() -> None:
    """Let the tasks get as far as they can without time passing."""
    for _ in range(5):
        await asyncio.sleep(0)
