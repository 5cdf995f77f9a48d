"""Requests to a broker of a set, and what holds up the answer to each: the journals of which other replicas
must have its entries. Acks of drafts, and of what opens a transaction or aborts it, wait until that is kept;
all others until it is durable.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from typing import Any, NamedTuple

from faircopy.serving.config_resources import BROKER, SET, TOPIC
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.codec import Message
from tests.crash_states.stage import Stage
from tests.simulation.network import Remote
from tests.simulation.producer import SimulatedProducer
from tests.simulation.replicas import Bound, Hold, Place

AT_ONCE_SECONDS = 0.01  # enough for a request to arrive, and to be carried out

SHARED = Hold(Place.CATALOGUE, Bound.DURABLE)
DECIDED = Hold(Place.HOME, Bound.DURABLE)
BEGUN = Hold(Place.HOME, Bound.KEPT)
STORED = Hold(Place.DATA, Bound.DURABLE)
DRAFTED = Hold(Place.DATA, Bound.KEPT)
OFFSETS_STORED = Hold(Place.OFFSETS, Bound.DURABLE)
OFFSETS_DRAFTED = Hold(Place.OFFSETS, Bound.KEPT)

Scene = Callable[[Stage], AsyncGenerator[None]]


class Case(NamedTuple):
    """A request whose answer waits for these journals. `is_shown`: others see what it has done after that.
    `is_new`: it is refused while replicas are missing. What ends a transaction is not: it waits.
    """

    scene: Scene
    holds: tuple[Hold, ...]
    is_shown: bool
    is_new: bool


CASES: list[Case] = []


def waits_for(*holds: Hold, is_shown: bool = False, is_new: bool = True) -> Callable[[Scene], Scene]:
    """What comes before the `yield` of a scene goes well; what comes after it is the request."""

    def note(scene: Scene) -> Scene:
        CASES.append(Case(scene, holds, is_shown, is_new))
        return scene

    return note


async def ask(
    remote: Remote, api_key: ApiKey, version: int, body: dict[str, Any], rows: str | None = None
) -> Message:
    """Send a request and return the answer, which has no error, nor has any of its `rows`."""
    answer = await remote.ask(api_key, version, body)
    for each in getattr(answer, rows) if rows else [answer]:
        assert each.error_code == 0, each
    return answer


def twin(stage: Stage, producer: SimulatedProducer) -> SimulatedProducer:
    """The same producer, over another connection."""
    return SimulatedProducer.restored(producer.snapshot(), stage.second_remote, random.Random(0))


async def send(producer: SimulatedProducer, name: str) -> None:
    await producer.send(name, [1], 0)


async def open_in(producer: SimulatedProducer, *names: str) -> None:
    """Begin a transaction that writes to these partitions."""
    await producer.add_partitions(list(names))
    for name in names:
        await send(producer, name)


async def begun(work: Any) -> asyncio.Future[Any]:
    """Work whose requests have arrived."""
    task: asyncio.Future[Any] = asyncio.ensure_future(work)
    await asyncio.sleep(AT_ONCE_SECONDS)
    return task


# -- batches -------------------------------------------------------------------------------------------------


@waits_for(STORED, is_shown=True)
async def produce(stage: Stage) -> AsyncGenerator[None]:
    yield
    await send(stage.plain, "a-0")


@waits_for(STORED, is_shown=True)
async def produce_again(stage: Stage) -> AsyncGenerator[None]:
    """A duplicate of what is not durable yet."""
    again = twin(stage, stage.plain)
    yield
    await begun(send(stage.plain, "a-0"))
    await send(again, "a-0")


@waits_for(DRAFTED)
async def produce_a_draft(stage: Stage) -> AsyncGenerator[None]:
    await stage.producer.add_partitions(["a-0"])
    yield
    await send(stage.producer, "a-0")


@waits_for(DRAFTED)
async def produce_a_draft_again(stage: Stage) -> AsyncGenerator[None]:
    await stage.producer.add_partitions(["a-0"])
    again = twin(stage, stage.producer)
    yield
    await begun(send(stage.producer, "a-0"))
    await send(again, "a-0")


@waits_for(DRAFTED, BEGUN)
async def produce_a_draft_before_add_partitions_is_answered(stage: Stage) -> AsyncGenerator[None]:
    """A1: an acked draft is of a transaction that nobody forgets."""
    yield
    await begun(stage.producer.add_partitions(["a-0"]))
    await send(twin(stage, stage.producer), "a-0")


@waits_for(STORED, is_shown=True)
async def delete_records(stage: Stage) -> AsyncGenerator[None]:
    await send(stage.plain, "a-0")
    yield
    topics = [{"name": "a", "partitions": [{"partition_index": 0, "offset": 1}]}]
    answer = await stage.remote.ask(ApiKey.DELETE_RECORDS, 1, {"topics": topics, "timeout_ms": 5_000})
    assert answer.topics[0].partitions[0].error_code == 0


# -- transactions --------------------------------------------------------------------------------------------


@waits_for(SHARED, DECIDED)
async def init_producer_id(stage: Stage) -> AsyncGenerator[None]:
    yield
    await SimulatedProducer(stage.remote, "new/1", random.Random(0)).begin_life()


@waits_for(SHARED)
async def init_producer_id_without_transactions(stage: Stage) -> AsyncGenerator[None]:
    yield
    await SimulatedProducer(stage.remote, None, random.Random(0)).begin_life()


@waits_for(DECIDED)
async def init_producer_id_again(stage: Stage) -> AsyncGenerator[None]:
    yield
    await stage.producer.begin_life()


@waits_for(DECIDED, BEGUN, STORED)
async def init_producer_id_of_an_open_transaction(stage: Stage) -> AsyncGenerator[None]:
    await open_in(stage.producer, "a-0")
    yield
    await stage.producer.begin_life()


@waits_for(BEGUN)
async def add_partitions(stage: Stage) -> AsyncGenerator[None]:
    yield
    await stage.producer.add_partitions(["a-0"])


@waits_for(BEGUN)
async def add_one_more_partition(stage: Stage) -> AsyncGenerator[None]:
    await open_in(stage.producer, "a-0")
    yield
    await stage.producer.add_partitions(["b-0"])


@waits_for(BEGUN)
async def add_partitions_again(stage: Stage) -> AsyncGenerator[None]:
    again = twin(stage, stage.producer)
    yield
    await begun(stage.producer.add_partitions(["a-0"]))
    await again.add_partitions(["a-0"])


@waits_for(DECIDED, STORED, is_shown=True, is_new=False)
async def commit(stage: Stage) -> AsyncGenerator[None]:
    await open_in(stage.producer, "a-0", "b-0")
    yield
    await stage.producer.end(committed=True)


@waits_for(DECIDED, STORED, is_shown=True, is_new=False)
async def commit_again(stage: Stage) -> AsyncGenerator[None]:
    await open_in(stage.producer, "a-0", "b-0")
    again = twin(stage, stage.producer)
    yield
    await begun(stage.producer.end(committed=True))
    await again.end(committed=True)


@waits_for(BEGUN, is_new=False)
async def abort(stage: Stage) -> AsyncGenerator[None]:
    await open_in(stage.producer, "a-0", "b-0")
    yield
    await stage.producer.end(committed=False)


@waits_for(BEGUN, is_new=False)
async def abort_again(stage: Stage) -> AsyncGenerator[None]:
    await open_in(stage.producer, "a-0", "b-0")
    again = twin(stage, stage.producer)
    yield
    await begun(stage.producer.end(committed=False))
    await again.end(committed=False)


# -- joint transactions --------------------------------------------------------------------------------------

GROUP, RUN, KEY = "job", "run", 1


async def member(remote: Remote, run: str = RUN) -> SimulatedProducer | None:
    return await SimulatedProducer.join(remote, random.Random(0), GROUP, run, KEY, "task")


async def written(stage: Stage) -> SimulatedProducer:
    """A member that has written something."""
    joined = await member(stage.remote)
    assert joined is not None
    await open_in(joined, "a-0")
    return joined


async def end_key(remote: Remote, *members: SimulatedProducer, committed: bool) -> None:
    await SimulatedProducer.end_joint(
        remote, random.Random(0), GROUP, RUN, KEY, list(members), committed=committed
    )


@waits_for(SHARED, BEGUN)
async def join_transaction(stage: Stage) -> AsyncGenerator[None]:
    yield
    await member(stage.remote)


@waits_for(SHARED, BEGUN)
async def join_transaction_of_another_run(stage: Stage) -> AsyncGenerator[None]:
    await written(stage)
    yield
    await member(stage.remote, "another run")


@waits_for(BEGUN)
async def add_partitions_of_a_member(stage: Stage) -> AsyncGenerator[None]:
    joined = await member(stage.remote)
    assert joined is not None
    yield
    await joined.add_partitions(["a-0"])


@waits_for(DECIDED, STORED, is_shown=True)
async def commit_jointly(stage: Stage) -> AsyncGenerator[None]:
    members = [await written(stage) for _ in range(2)]
    yield
    await end_key(stage.remote, *members, committed=True)


@waits_for(DECIDED, STORED, is_shown=True)
async def commit_jointly_again(stage: Stage) -> AsyncGenerator[None]:
    members = [await written(stage) for _ in range(2)]
    yield
    await begun(end_key(stage.remote, *members, committed=True))
    await end_key(stage.second_remote, *members, committed=True)


@waits_for(DECIDED)
async def commit_nothing_jointly(stage: Stage) -> AsyncGenerator[None]:
    await member(stage.remote)
    yield
    await end_key(stage.remote, committed=True)


@waits_for(DECIDED)
async def commit_nothing_jointly_again(stage: Stage) -> AsyncGenerator[None]:
    await member(stage.remote)
    yield
    await begun(end_key(stage.remote, committed=True))
    await end_key(stage.second_remote, committed=True)


@waits_for(DECIDED, STORED, is_shown=True)
async def join_transaction_of_a_key_that_is_being_committed(stage: Stage) -> AsyncGenerator[None]:
    """A4: who is told that its key is committed writes nothing."""
    joined = await written(stage)
    yield
    await begun(end_key(stage.remote, joined, committed=True))
    assert await member(stage.second_remote) is None


@waits_for(BEGUN, is_new=False)
async def abort_jointly(stage: Stage) -> AsyncGenerator[None]:
    joined = await written(stage)
    yield
    await end_key(stage.remote, joined, committed=False)


@waits_for(DECIDED)
async def forget_transaction_group(stage: Stage) -> AsyncGenerator[None]:
    await end_key(stage.remote, await written(stage), committed=True)
    await asyncio.sleep(1)  # until its members have vanished
    yield
    await ask(stage.remote, ApiKey.FORGET_TRANSACTION_GROUP, 0, {"group": GROUP})


# -- offsets -------------------------------------------------------------------------------------------------

READERS = {"group_id": "readers"}
AT_5 = [{"name": "a", "partitions": [{"partition_index": 0, "committed_offset": 5}]}]


async def commit_at_5(remote: Remote) -> None:
    answer = await remote.ask(ApiKey.OFFSET_COMMIT, 2, READERS | {"member_id": "", "topics": AT_5})
    assert answer.topics[0].partitions[0].error_code == 0


async def commit_at_5_in(producer: SimulatedProducer, remote: Remote) -> None:
    answer = await remote.ask(ApiKey.TXN_OFFSET_COMMIT, 3, producer._who() | READERS | {"topics": AT_5})
    assert answer.topics[0].partitions[0].error_code == 0


async def add_offsets(producer: SimulatedProducer, remote: Remote) -> None:
    await ask(remote, ApiKey.ADD_OFFSETS_TO_TXN, 3, producer._who() | READERS)


@waits_for(OFFSETS_STORED, is_shown=True)
async def commit_offsets(stage: Stage) -> AsyncGenerator[None]:
    yield
    await commit_at_5(stage.remote)


@waits_for(OFFSETS_STORED, is_shown=True)
async def delete_offsets(stage: Stage) -> AsyncGenerator[None]:
    await commit_at_5(stage.remote)
    yield
    topics = [{"name": "a", "partitions": [{"partition_index": 0}]}]
    await ask(stage.remote, ApiKey.OFFSET_DELETE, 0, READERS | {"topics": topics})


@waits_for(OFFSETS_STORED, is_shown=True)
async def delete_group(stage: Stage) -> AsyncGenerator[None]:
    await commit_at_5(stage.remote)
    yield
    await ask(stage.remote, ApiKey.DELETE_GROUPS, 1, {"groups_names": ["readers"]}, "results")


@waits_for(BEGUN)
async def add_offsets_to_txn(stage: Stage) -> AsyncGenerator[None]:
    yield
    await add_offsets(stage.producer, stage.remote)


@waits_for(OFFSETS_DRAFTED)
async def commit_offsets_in_a_transaction(stage: Stage) -> AsyncGenerator[None]:
    await add_offsets(stage.producer, stage.remote)
    yield
    await commit_at_5_in(stage.producer, stage.remote)


@waits_for(OFFSETS_DRAFTED, BEGUN)
async def commit_offsets_before_add_offsets_is_answered(stage: Stage) -> AsyncGenerator[None]:
    """A1, as for drafts."""
    yield
    await begun(add_offsets(stage.producer, stage.remote))
    await commit_at_5_in(stage.producer, stage.second_remote)


@waits_for(DECIDED, OFFSETS_STORED, is_shown=True, is_new=False)
async def commit_with_offsets(stage: Stage) -> AsyncGenerator[None]:
    await add_offsets(stage.producer, stage.remote)
    await commit_at_5_in(stage.producer, stage.remote)
    yield
    await stage.producer.end(committed=True)


@waits_for(DECIDED, STORED, OFFSETS_STORED, is_shown=True)
async def commit_jointly_with_offsets(stage: Stage) -> AsyncGenerator[None]:
    """Each member has promised, also in a journal that the lead has not written to (I5)."""
    lead, joined = await written(stage), await member(stage.remote)
    assert joined is not None
    await add_offsets(joined, stage.remote)
    await commit_at_5_in(joined, stage.remote)
    yield
    await end_key(stage.remote, lead, joined, committed=True)


# -- groups --------------------------------------------------------------------------------------------------


async def join(remote: Remote, instance: str | None = "one") -> dict[str, Any]:
    """Join a group, as a static member if there is an instance; who it is in which generation."""
    timeouts = {"session_timeout_ms": 60_000, "rebalance_timeout_ms": 60_000}
    protocols = {"protocol_type": "consumer", "protocols": [{"name": "turns", "metadata": b""}]}
    who = READERS | {"group_instance_id": instance, "member_id": ""}
    answer = await ask(remote, ApiKey.JOIN_GROUP, 5 if instance else 3, who | timeouts | protocols)
    return who | {"member_id": answer.member_id, "generation_id": answer.generation_id}


async def sync(remote: Remote, who: dict[str, Any]) -> None:
    assigned = [{"member_id": who["member_id"], "assignment": b"all"}]
    await ask(remote, ApiKey.SYNC_GROUP, 3, who | {"assignments": assigned})


@waits_for()
async def join_group(stage: Stage) -> AsyncGenerator[None]:
    """The first generation is stored with its assignment."""
    yield
    await join(stage.remote)


@waits_for(OFFSETS_STORED)
async def sync_group(stage: Stage) -> AsyncGenerator[None]:
    who = await join(stage.remote)
    yield
    await sync(stage.remote, who)


@waits_for(OFFSETS_STORED)
async def join_group_as_a_member_that_came_back(stage: Stage) -> AsyncGenerator[None]:
    await sync(stage.remote, await join(stage.remote))
    yield
    await join(stage.remote)


@waits_for(OFFSETS_STORED)
async def leave_group(stage: Stage) -> AsyncGenerator[None]:
    """B12. The last member leaves."""
    who = await join(stage.remote)
    await sync(stage.remote, who)
    yield
    await ask(stage.remote, ApiKey.LEAVE_GROUP, 3, READERS | {"members": [who]}, "members")


@waits_for(OFFSETS_STORED)
async def leave_group_as_older_clients_do(stage: Stage) -> AsyncGenerator[None]:
    who = await join(stage.remote, None)
    await sync(stage.remote, who)
    yield
    await ask(stage.remote, ApiKey.LEAVE_GROUP, 2, who)


# -- topics and settings -------------------------------------------------------------------------------------


@waits_for(SHARED, is_shown=True)
async def create_topics(stage: Stage) -> AsyncGenerator[None]:
    yield
    topic = {"name": "c", "num_partitions": 1, "replication_factor": -1, "assignments": [], "configs": []}
    await ask(stage.remote, ApiKey.CREATE_TOPICS, 5, {"topics": [topic], "timeout_ms": 5_000}, "topics")


@waits_for(SHARED, is_shown=True)
async def create_partitions(stage: Stage) -> AsyncGenerator[None]:
    yield
    topics = [{"name": "a", "count": 2, "assignments": None}]
    body = {"topics": topics, "timeout_ms": 5_000, "validate_only": False}
    await ask(stage.remote, ApiKey.CREATE_PARTITIONS, 1, body, "results")


@waits_for(SHARED, is_shown=True)
async def delete_topics(stage: Stage) -> AsyncGenerator[None]:
    yield
    await ask(stage.remote, ApiKey.DELETE_TOPICS, 5, {"topic_names": ["b"], "timeout_ms": 5_000}, "responses")


async def configure(remote: Remote, kind: int, name: str, setting: str) -> None:
    configs = [{"name": setting, "config_operation": SET, "value": "123456"}]
    resources = [{"resource_type": kind, "resource_name": name, "configs": configs}]
    await ask(remote, ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, {"resources": resources}, "responses")


@waits_for(SHARED, is_shown=True)
async def change_a_topic(stage: Stage) -> AsyncGenerator[None]:
    yield
    await configure(stage.remote, TOPIC, "a", "max.message.bytes")


@waits_for(SHARED, is_shown=True)
async def change_a_broker(stage: Stage) -> AsyncGenerator[None]:
    yield
    await configure(stage.remote, BROKER, "", "plain.grace.ms")
