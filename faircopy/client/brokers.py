"""The way to the brokers: who leads a partition, who coordinates a group, and asking until there is an
answer.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from faircopy.client.errors import ConnectionFailed, OutcomeUnknown, RequestFailed, made_anew, request_failed
from faircopy.client.link import Link
from faircopy.client.protocol import FIND_COORDINATOR, METADATA, Request
from faircopy.wire.address import Address, parse_address
from faircopy.wire.codec import Body, Message
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import UUID_ZERO

REQUEST_SECONDS = 30.0
CONNECT_SECONDS = 10.0
METADATA_MAX_AGE_SECONDS = 300.0
"""How long the number of a topic's partitions is taken for the present one, as in Kafka's clients."""
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.05, 1.0
TRANSACTION_KEY = 1

RETRIABLE = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)

FindLink = Callable[[], Awaitable[Link]]
"""Finds the broker to ask, as far as that is known now."""
Outcome = Callable[[Message], tuple[int, str | None]]
"""Takes error code and message from an answer."""
TopicPartition = tuple[str, int]


class KnownTopic(NamedTuple):
    """A topic as the brokers have it now. One of the same name that is made anew has another id."""

    topic_id: bytes
    partitions: int


class Count(NamedTuple):
    """The number of a topic's partitions, and the time of the loop, in seconds, at which that was so."""

    partitions: int
    at: float


class Brokers:
    """The brokers behind some addresses. Links are made when they are needed."""

    def __init__(
        self,
        addresses: Sequence[str],
        client_id: str,
        metadata_max_age_seconds: float = METADATA_MAX_AGE_SECONDS,
    ) -> None:
        self._bootstrap = [parse_address(address) for address in addresses]
        self._client_id = client_id
        self._metadata_max_age_seconds = metadata_max_age_seconds
        self._links: dict[Address, Link] = {}
        self._connecting = asyncio.Lock()
        self._nodes: dict[int, Address] = {}
        self._leaders: dict[TopicPartition, int] = {}
        self._counts: dict[str, Count] = {}
        self._coordinators: dict[str, Address] = {}

    async def close(self) -> None:
        """Close all links."""
        for link in self._links.values():
            await link.close()

    # -- links -----------------------------------------------------------------------------------------------

    async def _link(self, address: Address) -> Link:
        link = self._links.get(address)
        if link is not None and link.is_open:
            return link
        async with self._connecting:
            link = self._links.get(address)
            if link is None or not link.is_open:
                link = self._links[address] = await Link.open(address, self._client_id, CONNECT_SECONDS)
            return link

    async def any(self) -> Link:
        """A link to any broker. Raises ConnectionFailed."""
        failure = ConnectionFailed("no address of a broker is given")
        for address in dict.fromkeys((*self._nodes.values(), *self._bootstrap)):
            try:
                return await self._link(address)
            except ConnectionFailed as error:
                failure = error
        raise failure

    async def leader(self, topic: str, partition: int, topic_id: bytes = UUID_ZERO) -> Link:
        """A link to the leader of a partition. Raises ConnectionFailed, RequestFailed."""
        if (topic, partition) not in self._leaders:
            await self.look_up(topic, topic_id)
        node = self._nodes.get(self._leaders.get((topic, partition), -1))
        if node is None:
            raise request_failed(
                ErrorCode.LEADER_NOT_AVAILABLE, None, f"looking for the leader of {topic}-{partition}"
            )
        return await self._link(node)

    async def coordinator(self, group: str) -> Link:
        """A link to the coordinator of a group of transactions. Raises ConnectionFailed, RequestFailed."""
        if group not in self._coordinators:
            body = {"key": group, "key_type": TRANSACTION_KEY}
            answer = await (await self.any()).ask(FIND_COORDINATOR, body, REQUEST_SECONDS)
            if answer.error_code:
                raise request_failed(
                    answer.error_code, answer.error_message, f"finding who coordinates {group!r}"
                )
            self._coordinators[group] = Address(answer.host, answer.port)
        return await self._link(self._coordinators[group])

    # -- metadata --------------------------------------------------------------------------------------------

    async def look_up(self, topic: str, topic_id: bytes = UUID_ZERO) -> KnownTopic:
        """Ask who leads the partitions of a topic: of the one with this id, if one is given. Raises
        ConnectionFailed, RequestFailed, DataLost if the id is gone.
        """
        asked = {"topic_id": topic_id, "name": topic}
        link, now = await self.any(), asyncio.get_running_loop().time()
        answer = await link.ask(METADATA, {"topics": [asked]}, REQUEST_SECONDS)
        self._nodes = {node.node_id: Address(node.host, node.port) for node in answer.brokers}
        (found,) = answer.topics
        if found.error_code:
            reason = made_anew(topic) if found.error_code == ErrorCode.UNKNOWN_TOPIC_ID else None
            raise request_failed(found.error_code, reason, f"looking for topic {topic!r}")
        self._counts[topic] = Count(len(found.partitions), now)
        for partition in found.partitions:
            self._leaders[topic, partition.partition_index] = partition.leader_id
        return KnownTopic(found.topic_id, len(found.partitions))

    async def topic(self, topic: str, topic_id: bytes, timeout_seconds: float) -> KnownTopic:
        """A topic as it is now: the one with this id, if it is not zero. Raises DataLost, RequestFailed,
        OutcomeUnknown.
        """
        doing = f"looking for topic {topic!r}"
        found = await self.patiently(lambda: self.look_up(topic, topic_id), doing, timeout_seconds)
        assert isinstance(found, KnownTopic)
        return found

    async def partitions_of(self, topic: str, timeout_seconds: float) -> int:
        """The number of partitions of a topic, as it was not long ago: it is looked up again when that is too
        old, or when a request was refused. Raises RequestFailed, OutcomeUnknown.
        """
        known, now = self._counts.get(topic), asyncio.get_running_loop().time()
        if known is not None and now - known.at < self._metadata_max_age_seconds:
            return known.partitions
        return (await self.topic(topic, UUID_ZERO, timeout_seconds)).partitions

    async def topics(self, timeout_seconds: float) -> dict[str, KnownTopic]:
        """All topics by name. Raises RequestFailed, OutcomeUnknown."""

        async def once() -> Message:
            body = {"topics": None, "allow_auto_topic_creation": False}
            return await (await self.any()).ask(METADATA, body, REQUEST_SECONDS)

        answer = await self.patiently(once, "listing topics", timeout_seconds)
        assert isinstance(answer, Message)
        return {
            topic.name: KnownTopic(topic.topic_id, len(topic.partitions))
            for topic in answer.topics
            if not topic.is_internal
        }

    def forget(self) -> None:
        """What was known of partitions, leaders and coordinators may be out of date."""
        self._counts.clear()
        self._leaders.clear()
        self._coordinators.clear()

    # -- asking ----------------------------------------------------------------------------------------------

    async def ask(
        self,
        find: FindLink,
        request: Request,
        body: Body,
        outcome: Outcome,
        doing: str,
        timeout_seconds: float,
    ) -> Message:
        """Ask until there is a final answer.

        The request must be one that takes effect once, however often it is sent. Raises RequestFailed,
        OutcomeUnknown.
        """

        async def once() -> Message:
            answer = await (await find()).ask(request, body, REQUEST_SECONDS)
            code, message = outcome(answer)
            if code:
                raise request_failed(code, message, doing)
            return answer

        found = await self.patiently(once, doing, timeout_seconds)
        assert isinstance(found, Message)
        return found

    async def patiently(
        self, once: Callable[[], Awaitable[object]], doing: str, timeout_seconds: float
    ) -> object:
        """Try until it succeeds or is refused for good. Raises RequestFailed, OutcomeUnknown."""
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + timeout_seconds, PAUSE_SECONDS
        while True:
            try:
                return await once()
            except (ConnectionFailed, RequestFailed) as error:
                if isinstance(error, RequestFailed) and error.code not in RETRIABLE:
                    raise
                reason = error
            self.forget()
            pause = min(pause * (1 + random.random()), PAUSE_SECONDS_MAX)
            if loop.time() + pause > until:
                raise OutcomeUnknown(
                    f"{doing}: no final answer within {timeout_seconds:g} s; the last reason was: {reason}"
                ) from reason
            await asyncio.sleep(pause)


def outcome_of(answer: Message) -> tuple[int, str | None]:
    """The error code and message of an answer that has them at its top."""
    return answer.error_code, getattr(answer, "error_message", None)
