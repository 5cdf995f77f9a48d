"""Short workloads: one to three operations after a moment at which everything was durable."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import Awaitable, Callable, Iterator
from unittest import mock

from faircopy.transactions import coordinator
from faircopy.transactions.table import TransactionTable
from faircopy.transactions.timeouts import idle
from faircopy.transactions.transaction import Producer
from faircopy.wire.api_keys import ApiKey
from tests.checker.history import KeyCommitted, Offset, Result, Send
from tests.crash_states.stage import Stage
from tests.simulation.network import Remote
from tests.simulation.producer import TRANSACTION_TIMEOUT_MS, Refused, SimulatedProducer
from tests.simulation.record import Attempt

Step = Callable[[Stage], Awaitable[None]]

SURVIVOR = "blue/1"


async def plain(stage: Stage) -> None:
    """PLAIN."""
    await stage.send_plain("a-0")


async def commit(stage: Stage) -> None:
    """BEGIN, ADD, DRAFT, PREPARE_COMMIT, PREPARED, APPLY, COMMITTED, in two partitions."""
    await transaction(stage, ["a-0", "b-0", "a-0"], is_committed=True)


async def commit_with_offsets(stage: Stage) -> None:
    """A commit with the offsets of a group."""
    await transaction(stage, ["b-0"], is_committed=True, with_offsets=True)


async def abort(stage: Stage) -> None:
    """PREPARE_ABORT, DISCARD, ABORTED."""
    await transaction(stage, ["a-0", "b-0"], is_committed=False)


async def transaction(
    stage: Stage, partitions: list[str], *, is_committed: bool, with_offsets: bool = False
) -> None:
    attempt = stage.attempt("red/1", "red")
    await stage.producer.add_partitions(sorted(set(partitions)))
    for name in partitions:
        await stage.producer.send(name, stage.values(attempt, name, 1), 0)
    if with_offsets:
        attempt.offsets = [Offset("readers", "a-0", stage.next_value())]
        await stage.producer.send_offsets("readers", {"a-0": attempt.offsets[0].offset})
    attempt.commit_asked = stage.now if is_committed else None
    if not is_committed:
        attempt.finish(Result.FAILED, stage.now)
    await stage.producer.end(committed=is_committed)
    if is_committed:
        attempt.finish(Result.OK, stage.now)


async def open_only(stage: Stage) -> None:
    """Drafts of a transaction that nobody ends."""
    attempt = stage.attempt("green/1", "green")
    try:
        await stage.other.add_partitions(["a-0"])
    except Refused:  # the previous one has timed out
        await stage.other.begin_life()
        await stage.other.add_partitions(["a-0"])
    await stage.other.send("a-0", stage.values(attempt, "a-0", 1), 0)


async def begin(stage: Stage) -> None:
    """BEGIN, ADD, DRAFT of a transaction whose client goes on after the crash: all that it means to commit is
    committed, or nothing.
    """
    producer = SimulatedProducer(stage.second_remote, SURVIVOR, random.Random(0))
    await producer.begin_life()
    attempt = stage.attempt(SURVIVOR, "blue")
    await producer.add_partitions(["a-0"])
    await producer.send("a-0", stage.values(attempt, "a-0", 1), 0)
    stage.leave_open(producer, attempt, "b-0")


async def time_out(stage: Stage) -> None:
    """A transaction past its timeout is aborted, and its producer fenced."""
    await begin(stage)
    await asyncio.sleep(1.5 * TRANSACTION_TIMEOUT_MS / 1000)


async def abort_and_begin(stage: Stage) -> None:
    """An acknowledged abort. Its client begins the next transaction, or does so after the crash."""
    producer = SimulatedProducer(stage.second_remote, SURVIVOR, random.Random(0))
    await producer.begin_life()
    first = stage.attempt(SURVIVOR, "blue")
    await producer.add_partitions(["a-0"])
    await producer.send("a-0", stage.values(first, "a-0", 1), 0)
    await producer.end(committed=False)
    first.finish(Result.FAILED, stage.now)
    stage.leave_open(producer, stage.attempt(SURVIVOR, "blue"), "a-0")


async def commit_and_ask_again(stage: Stage) -> None:
    """PREPARE_COMMIT, PREPARED. After the crash, the client asks for the commit again."""
    producer = SimulatedProducer(stage.second_remote, SURVIVOR, random.Random(0))
    await producer.begin_life()
    attempt = stage.attempt(SURVIVOR, "blue")
    await producer.add_partitions(["a-0", "b-0"])
    for name in ("a-0", "b-0"):
        await producer.send(name, stage.values(attempt, name, 1), 0)
    attempt.commit_asked = stage.now
    stage.leave_to_end(producer, attempt, [])
    await producer.end(committed=True)
    attempt.finish(Result.OK, stage.now)


async def send_at_once(stage: Stage) -> None:
    """ADD, DRAFT of a client that does not wait for an answer. It sends both again after the crash."""
    producer = SimulatedProducer(stage.second_remote, SURVIVOR, random.Random(0))
    await producer.begin_life()
    attempt = stage.attempt(SURVIVOR, "blue")
    await producer.add_partitions(["a-0"])
    await producer.send("a-0", stage.values(attempt, "a-0", 1), 0)
    rest = [Send("b-0", stage.next_value())]
    stage.leave_to_end(producer, attempt, rest)
    add, send = (
        SimulatedProducer.restored(producer.snapshot(), remote, random.Random(0))
        for remote in (stage.second_remote, stage.third_remote)
    )

    async def send_soon() -> None:
        await asyncio.sleep(0.002)
        with contextlib.suppress(Refused):  # it was faster
            await send.send("b-0", [rest[0].value], 0)

    await asyncio.gather(add.add_partitions(["b-0"]), send_soon())


async def succeed(stage: Stage) -> None:
    """Another instance takes over from the producer of an open transaction."""
    await begin(stage)
    await SimulatedProducer(stage.second_remote, SURVIVOR, random.Random(0)).begin_life()


async def plain_repeated(stage: Stage) -> None:
    """PLAIN, sent again on another connection before the first is durable."""
    attempt = stage.attempt("plain", None)
    stage.values(attempt, "a-0", 1)
    twin = SimulatedProducer.restored(stage.plain.snapshot(), stage.second_remote, random.Random(0))

    async def send(producer: SimulatedProducer) -> None:
        await producer.send("a-0", [attempt.sends[0].value], 0)
        attempt.finish(Result.OK, stage.now)

    await asyncio.gather(send(stage.plain), send(twin))


async def commit_repeated(stage: Stage) -> None:
    """A commit that is requested again on another connection before the first is durable."""
    attempt = stage.attempt("red/1", "red")
    await stage.producer.add_partitions(["a-0", "b-0"])
    for name in ("a-0", "b-0"):
        await stage.producer.send(name, stage.values(attempt, name, 1), 0)
    twin = SimulatedProducer.restored(stage.producer.snapshot(), stage.second_remote, random.Random(0))
    attempt.commit_asked = stage.now

    async def end(producer: SimulatedProducer, after: float) -> None:
        await asyncio.sleep(after)
        await producer.end(committed=True)
        attempt.finish(Result.OK, stage.now)

    await asyncio.gather(end(stage.producer, 0), end(twin, 0.000_1))


JOB, RUN = "job", "run"


async def written(stage: Stage, attempt: Attempt, key: int, partition: str) -> SimulatedProducer:
    """A member of a joint group that has written something."""
    member = await SimulatedProducer.join(stage.remote, random.Random(0), JOB, RUN, key, "task")
    assert member is not None
    await member.add_partitions([partition])
    await member.send(partition, stage.values(attempt, partition, 1), 0)
    return member


async def commit_key(
    stage: Stage, remote: Remote, attempt: Attempt, key: int, members: list[SimulatedProducer]
) -> None:
    """Commit what members have written; whoever asks is told in the end that the key is committed."""
    await SimulatedProducer.end_joint(remote, random.Random(0), JOB, RUN, key, members, committed=True)
    attempt.finish(Result.OK, stage.now)
    stage.told.append(KeyCommitted(JOB, key, stage.now))


async def commit_jointly(stage: Stage) -> None:
    """JOIN, and one PREPARE_COMMIT for two members; an attempt that is not named is left behind."""
    key = stage.next_value()
    failed = stage.attempt(JOB, JOB)
    failed.key = key
    await written(stage, failed, key, "a-0")
    failed.finish(Result.FAILED, stage.now)
    attempt = stage.attempt(JOB, JOB)
    attempt.key = key
    members = [await written(stage, attempt, key, name) for name in ("a-0", "b-0")]
    attempt.commit_asked = stage.now
    await commit_key(stage, stage.remote, attempt, key, members)


async def commit_jointly_twice(stage: Stage) -> None:
    """A joint commit that is requested again on another connection before the first is durable."""
    key, attempt = stage.next_value(), stage.attempt(JOB, JOB)
    attempt.key = key
    members = [await written(stage, attempt, key, name) for name in ("a-0", "b-0")]
    attempt.commit_asked = stage.now

    async def again() -> None:
        await asyncio.sleep(0.000_1)
        await commit_key(stage, stage.second_remote, attempt, key, members)

    await asyncio.gather(commit_key(stage, stage.remote, attempt, key, members), again())


async def replace_run(stage: Stage) -> None:
    """JOIN of another run, which fences a member with an open transaction."""
    key, attempt = stage.next_value(), stage.attempt(JOB, JOB)
    attempt.key = key
    zombie = await written(stage, attempt, key, "a-0")
    await SimulatedProducer.join(stage.second_remote, random.Random(0), JOB, "another run", key, "task")
    attempt.finish(Result.FAILED, stage.now)
    with contextlib.suppress(Refused):
        await SimulatedProducer.end_joint(
            stage.remote, random.Random(0), JOB, RUN, key, [zombie], committed=True
        )


async def forget_members(stage: Stage) -> None:
    """FORGET_PRODUCERS of members that have done their work."""
    await stage.in_broker(stage.broker.shards.forget_gone())


async def fence(stage: Stage) -> None:
    """FENCE: a new instance of the producer."""
    await stage.producer.begin_life()


async def checkpoint(stage: Stage) -> None:
    """Checkpoints, and the deletion of what they make superfluous."""
    await stage.in_broker(stage.broker.checkpoint(all_changed=True))


async def trim(stage: Stage) -> None:
    """TRIM: the first record is deleted, after somebody has read it."""
    await stage.read("a-0")
    await stage.remote.ask(
        ApiKey.DELETE_RECORDS,
        1,
        {
            "topics": [{"name": "a", "partitions": [{"partition_index": 0, "offset": 1}]}],
            "timeout_ms": 5_000,
        },
    )


async def new_topic(stage: Stage) -> None:
    """A topic is created, and deleted."""
    await stage.topics.make("c", configs={})
    await stage.topics.delete("c")


MADE_WITH = {"max.message.bytes": "900000"}


async def make_a_topic(stage: Stage) -> None:
    """A topic is created and written to."""
    await stage.topics.make("d", configs=MADE_WITH)
    await stage.topics.send("d")


async def make_topics(stage: Stage) -> None:
    """Several topics are created at once, and deleted at once."""
    await stage.topics.make("e", "f", configs=MADE_WITH)
    await stage.topics.delete("e", "f")


async def change_topic(stage: Stage) -> None:
    """A setting of the topic is changed, and it is written to."""
    await stage.topics.configure("d", {"max.message.bytes": f"{800_000 + stage.next_value()}"})
    await stage.topics.send("d")


async def grow_topic(stage: Stage) -> None:
    """The topic gets one more partition, which is written to."""
    await stage.topics.grow("d")
    await stage.topics.send("d")


async def delete_topic(stage: Stage) -> None:
    """The topic is deleted."""
    await stage.topics.delete("d")


async def make_topic_again(stage: Stage) -> None:
    """The topic is deleted, and another one gets its name."""
    await delete_topic(stage)
    await stage.topics.make("d", configs={})
    await stage.topics.send("d")


async def change_topic_and_checkpoint(stage: Stage) -> None:
    """The topic changes before a checkpoint, during it, and after it."""
    await change_topic(stage)
    await asyncio.gather(checkpoint(stage), change_topic(stage))
    await change_topic(stage)


async def delete_topic_and_checkpoint(stage: Stage) -> None:
    """The topic is deleted during a checkpoint, and another one gets its name."""
    await asyncio.gather(checkpoint(stage), make_topic_again(stage))


async def publish(stage: Stage) -> None:
    """New messages go into the plain table; the first time with a compact entry and merged files."""
    await stage.publish()


async def table_of_its_own(stage: Stage) -> None:
    """A topic with a table is created, written to, published and deleted."""
    await stage.make_topic("d", 1, {})
    await stage.plain.send("d-0", [0], 0)
    await stage.publish()
    await stage.remote.ask(ApiKey.DELETE_TOPICS, 5, {"topic_names": ["d"], "timeout_ms": 5_000})
    await stage.publish()


async def lead_anew(stage: Stage) -> None:
    """One shard after the other is closed, and led again."""
    for shard in range(stage.machine.shards):
        await stage.in_broker(stage.broker.shards.close(shard))
        await stage.in_broker(stage.broker.shards.lead(shard))


async def commit_and_lead_anew(stage: Stage) -> None:
    """A commit is in flight while shards change hands."""
    await asyncio.gather(commit(stage), lead_anew(stage))


@contextlib.contextmanager
def forgetting_all() -> Iterator[None]:
    """Every transactional id without an open transaction counts as idle for too long."""

    def idle_at_once(table: TransactionTable, now_ms: int, _idle_ms: int) -> list[Producer]:
        return idle(table, now_ms, -1)

    with mock.patch.object(coordinator, "idle", idle_at_once):
        yield


async def forget(stage: Stage) -> None:
    """FORGET, FORGET_PRODUCERS: transactional ids without an open transaction, one of which comes back."""
    with forgetting_all():
        await stage.in_broker(stage.broker.shards.forget_idle())
    await stage.producer.begin_life()


STEPS: list[Step] = [
    plain,
    commit,
    commit_with_offsets,
    abort,
    open_only,
    fence,
    time_out,
    abort_and_begin,
    commit_and_ask_again,
    send_at_once,
    succeed,
    plain_repeated,
    commit_repeated,
    checkpoint,
    trim,
    new_topic,
]
STEPS_MAX = 3


TABLE_SCENARIOS: list[tuple[Step, ...]] = [
    (table_of_its_own,),
    *itertools.product((plain, commit), (publish,)),
    *itertools.product((plain, commit, commit_with_offsets, abort, checkpoint), (commit,), (publish,)),
    *itertools.product((commit,), (publish,), (plain, commit)),
]


HANDOVER_SCENARIOS: list[tuple[Step, ...]] = [
    (commit_and_lead_anew,),
    (lead_anew,),
    *itertools.product(
        (plain, commit, commit_with_offsets, abort, open_only, time_out, succeed), (lead_anew,)
    ),
    *itertools.product((plain, commit, open_only), (lead_anew,), (plain, commit)),
    *itertools.product((open_only, lead_anew), (commit_and_lead_anew,)),
]


FORGET_SCENARIOS: list[tuple[Step, ...]] = [
    *itertools.product((commit, commit_with_offsets, abort, open_only, time_out), (forget,)),
    *itertools.product((commit,), (forget,), (commit, checkpoint, lead_anew)),
    *itertools.product((commit,), (lead_anew, checkpoint), (forget,)),
]


TOPIC_SCENARIOS: list[tuple[Step, ...]] = [
    (make_a_topic,),
    (make_topics,),
    *itertools.product(
        (make_a_topic,),
        (
            change_topic,
            grow_topic,
            delete_topic,
            make_topic_again,
            change_topic_and_checkpoint,
            delete_topic_and_checkpoint,
        ),
    ),
    *itertools.product(
        (make_a_topic,),
        (change_topic, grow_topic, make_topic_again, checkpoint),
        (change_topic, grow_topic, delete_topic, make_topic_again, checkpoint),
    ),
    *itertools.product((make_a_topic,), (delete_topic,), (make_a_topic, checkpoint)),
]


JOINT_SCENARIOS: list[tuple[Step, ...]] = [
    (commit_jointly_twice,),
    *itertools.product((plain, commit, commit_jointly), (commit_jointly, replace_run)),
    *itertools.product((commit_jointly,), (checkpoint, forget_members, lead_anew), (commit_jointly,)),
]


def scenarios() -> Iterator[tuple[Step, ...]]:
    """Yield all sequences of up to three steps, and those of special kinds."""
    for length in range(1, STEPS_MAX + 1):
        yield from itertools.product(STEPS, repeat=length)
    yield from TABLE_SCENARIOS
    yield from HANDOVER_SCENARIOS
    yield from FORGET_SCENARIOS
    yield from JOINT_SCENARIOS
    yield from TOPIC_SCENARIOS


def has_tables(steps: tuple[Step, ...]) -> bool:
    return not {publish, table_of_its_own}.isdisjoint(steps)


def name_of(steps: tuple[Step, ...]) -> str:
    return " + ".join(step.__name__ for step in steps)


def names_of(name: str) -> list[str]:
    """The names of the steps of a workload with this name."""
    return name.split(" + ")


__all__ = ["STEPS", "Attempt", "Step", "name_of", "scenarios"]
