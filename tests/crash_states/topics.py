"""Topics that come, change and go while a scenario plays: what their owner knows, and what is true after a
crash. Each request is there for all of its topics, or for none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, NamedTuple

from faircopy.broker.broker import Broker
from faircopy.catalogue.topics import is_topic_directory
from faircopy.serving.config_resources import SET, TOPIC
from faircopy.storage.paths import list_directory
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch
from tests.simulation.consumer import EARLIEST, LATEST, SimulatedConsumer
from tests.simulation.machine import Machine
from tests.simulation.network import Disconnected, Remote

PAUSE_SECONDS = 0.1
NO_ID = bytes(16)
VALUE_AFTER = 0  # that is sent after a crash


class TopicState(NamedTuple):
    """A topic. `id` is None if its owner was not told. `values` are those of each partition."""

    id: bytes | None
    configs: Mapping[str, str]
    values: tuple[tuple[int, ...], ...]


class KnownTopic(NamedTuple):
    """What its owner knows of a name: it is one of `states`, where None is no topic. Topics with the ids
    `former` were deleted.
    """

    name: str
    states: tuple[TopicState | None, ...] = (None,)
    former: frozenset[bytes] = frozenset()


class Owner:
    """A client that makes, uses and deletes topics, and waits for each answer."""

    def __init__(self, remote: Remote, next_value: Callable[[], int]) -> None:
        self._remote = remote
        self._next_value = next_value
        self._known: dict[str, KnownTopic] = {}

    def known(self) -> tuple[KnownTopic, ...]:
        """What it knows now."""
        return tuple(self._known.values())

    def _there(self, name: str) -> TopicState:
        (state,) = self._known[name].states
        assert state is not None, f"a scenario uses {name}, which it has deleted"
        return state

    async def _ask(
        self, api_key: ApiKey, version: int, body: dict[str, Any], after: Mapping[str, TopicState | None]
    ) -> None:
        """Ask for a change. Once it is acknowledged, topics are as they are in `after`."""
        for name, state in after.items():
            known = self._known.get(name, KnownTopic(name))
            self._known[name] = known._replace(states=(*known.states, state))
        await ask(self._remote, api_key, version, body)
        for name, state in after.items():
            self._known[name] = self._known[name]._replace(states=(state,))

    async def make(self, *names: str, configs: Mapping[str, str]) -> None:
        """Make topics of one partition, in one request."""
        after = {name: TopicState(None, dict(configs), ((),)) for name in names}
        topics = [
            {
                "name": name,
                "num_partitions": 1,
                "replication_factor": -1,
                "assignments": [],
                "configs": [{"name": key, "value": value} for key, value in configs.items()],
            }
            for name in names
        ]
        await self._ask(ApiKey.CREATE_TOPICS, 5, {"topics": topics, "timeout_ms": 10_000}, after)
        for name in names:
            topic_id, _ = await described(self._remote, name)
            self._known[name] = self._known[name]._replace(states=(after[name]._replace(id=topic_id),))

    async def delete(self, *names: str) -> None:
        """Delete topics, in one request."""
        for name in names:
            former = self._known[name].former | {self._there(name).id or NO_ID}
            self._known[name] = self._known[name]._replace(former=former)
        body = {"topic_names": list(names), "timeout_ms": 10_000}
        await self._ask(ApiKey.DELETE_TOPICS, 5, body, dict.fromkeys(names))

    async def configure(self, name: str, configs: Mapping[str, str]) -> None:
        """Change settings of a topic."""
        state = self._there(name)
        rows = [{"name": key, "value": value, "config_operation": SET} for key, value in configs.items()]
        body = {"resources": [{"resource_type": TOPIC, "resource_name": name, "configs": rows}]}
        after = state._replace(configs={**state.configs, **configs})
        await self._ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body, {name: after})

    async def grow(self, name: str) -> None:
        """Give a topic one more partition."""
        state = self._there(name)
        asked = {"name": name, "count": len(state.values) + 1, "assignments": None}
        after = state._replace(values=(*state.values, ()))
        body = {"topics": [asked], "timeout_ms": 10_000}
        await self._ask(ApiKey.CREATE_PARTITIONS, 2, body, {name: after})

    async def send(self, name: str) -> None:
        """Send a value to the last partition."""
        state, value = self._there(name), self._next_value()
        *others, last = state.values
        after = state._replace(values=(*others, (*last, value)))
        await self._ask(ApiKey.PRODUCE, 8, produce(name, len(others), value), {name: after})


async def ask(remote: Remote, api_key: ApiKey, version: int, body: dict[str, Any]) -> None:
    """Repeat a request until all of it is done, or was done by an earlier try."""
    done = {ErrorCode.NONE}
    while True:
        try:
            found = set(codes_of(await remote.ask(api_key, version, {"validate_only": False, **body})))
        except Disconnected:
            found = {ErrorCode.NETWORK_EXCEPTION}
        if found <= done:
            return
        done |= {
            ErrorCode.TOPIC_ALREADY_EXISTS,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_PARTITIONS,
        }
        await asyncio.sleep(PAUSE_SECONDS)


def codes_of(answer: Any) -> Iterator[ErrorCode]:
    """All error codes in the answer to a change."""
    rows = next(getattr(answer, name) for name in ("topics", "results", "responses") if hasattr(answer, name))
    for row in rows:
        for each in getattr(row, "partition_responses", [row]):
            yield ErrorCode(each.error_code)


def produce(name: str, partition: int, value: int) -> dict[str, Any]:
    """The body of a Produce of one value."""
    data = {"index": partition, "records": build_batch([NewRecord(b"%d" % value)])}
    topic = {"name": name, "partition_data": [data]}
    return {"transactional_id": None, "acks": -1, "timeout_ms": 30_000, "topic_data": [topic]}


async def described(remote: Remote, name: str) -> tuple[bytes | None, int]:
    """The id of a topic and its number of partitions; None and 0 if there is no such topic."""
    while True:
        answer = await remote.ask(ApiKey.METADATA, 12, {"topics": [{"topic_id": NO_ID, "name": name}]})
        (topic,) = answer.topics
        if topic.error_code == ErrorCode.NONE:
            return bytes(topic.topic_id), len(topic.partitions)
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return None, 0
        await asyncio.sleep(PAUSE_SECONDS)


async def wrong_topics(machine: Machine, remote: Remote, known: tuple[KnownTopic, ...]) -> list[str]:
    """What is wrong with topics after a crash. In the end each of the known ones is there, and was used."""
    broker = machine.broker
    assert broker is not None, "the broker has ended itself"
    halves = [why async for why in what_is_there_by_halves(broker, remote, known)]
    wrong = [why for topic in known if (why := await what_is_wrong_with(broker, remote, topic))]
    return [*halves, *wrong, *wrong_directories(broker)]


async def what_is_there_by_halves(
    broker: Broker, remote: Remote, known: tuple[KnownTopic, ...]
) -> AsyncIterator[str]:
    """A request that was under way is there for all of its topics, or for none."""
    pending = [topic for topic in known if len(topic.states) > 1]
    possible = set(range(2))
    for name, states, former in pending:
        found = await state_of(broker, remote, name)
        possible &= {number for number, state in enumerate(states) if is_same(found, state, former)}
    if not possible:
        yield f"one request for {', '.join(topic.name for topic in pending)} is there by halves"


async def what_is_wrong_with(broker: Broker, remote: Remote, known: KnownTopic) -> str:
    """What is wrong with a topic; an empty string if nothing is. It is made if it is not there."""
    name, states, former = known
    found = await state_of(broker, remote, name)
    if not any(is_same(found, state, former) for state in states):
        return f"topic {name} is {found}, and not one of {states}, nor of former ids {sorted(former)}"
    if found is None:
        await Owner(remote, lambda: VALUE_AFTER).make(name, configs={})
        found = await state_of(broker, remote, name)
        if not is_same(found, TopicState(None, {}, ((),)), former):
            return f"topic {name} is {found} when it is made after a crash, with former ids {sorted(former)}"
    assert found is not None
    for number, values in enumerate(found.values):
        await ask(remote, ApiKey.PRODUCE, 8, produce(name, number, VALUE_AFTER))
        if (read := await values_of(remote, f"{name}-{number}")) != (*values, VALUE_AFTER):
            return f"{name}-{number} had {values}, and has {read} after one more was sent"
    return ""


def is_same(found: TopicState | None, state: TopicState | None, former: frozenset[bytes]) -> bool:
    """Whether a topic is as it should be. An id that is not known must be new."""
    if found is None or state is None:
        return found is state
    is_right_id = found.id == state.id if state.id is not None else found.id not in former
    return is_right_id and found[1:] == state[1:]


async def state_of(broker: Broker, remote: Remote, name: str) -> TopicState | None:
    """A topic as its clients find it."""
    topic_id, partitions = await described(remote, name)
    if topic_id is None:
        return None
    values = [await values_of(remote, f"{name}-{number}") for number in range(partitions)]
    return TopicState(topic_id, dict(broker.hosted.known(name).topic.configs), tuple(values))


async def values_of(remote: Remote, partition: str) -> tuple[int, ...]:
    """What is in a partition, without what was sent twice."""
    consumer = SimulatedConsumer(remote, [partition], is_committed=True)
    consumer.positions[partition] = await consumer.bound(partition, EARLIEST)
    end = await consumer.bound(partition, LATEST)
    values: list[int] = []
    while consumer.positions[partition] < end:
        values += [int(str(read.value)) for read in await consumer.poll()]
    return tuple(dict.fromkeys(values))


def wrong_directories(broker: Broker) -> Iterator[str]:
    """Directories of deleted topics, and partitions without one."""
    topics = [hosted.topic for hosted in broker.hosted.topics.values()]
    wanted = {topic.directory_name: set(map(str, range(topic.partitions))) for topic in topics}
    for root in (broker.directory.journal, broker.directory.log):
        there = [child for child in list_directory(root) if is_topic_directory(child.name)]
        found = {child.name: {each.name for each in list_directory(child)} for child in there}
        if found != wanted:
            yield f"{root} has {found}, and the topics are {wanted}"
