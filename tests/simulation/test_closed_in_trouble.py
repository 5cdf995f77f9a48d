"""A shard is closed or led anew while something else goes wrong, or at an awkward moment."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest import mock

import pytest

from faircopy.broker import broker
from faircopy.datalog.read import DamagedLog
from faircopy.datalog.segment import LogSegment
from faircopy.hosting import stopping
from faircopy.hosting.snapshots import NoSnapshot
from faircopy.journal.identity import TopicIdPartition
from faircopy.journal.journal import Journal
from faircopy.partition.hosted import HostedPartition
from faircopy.storage.expiry import Expired
from faircopy.storage.failures import WriteFailure
from faircopy.storage.paths import list_directory
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from tests.crash_states.stage import Stage
from tests.known_transactions import known_transactions
from tests.simulation.aftermath import Fate
from tests.simulation.consumer import SimulatedConsumer
from tests.simulation.producer import Refused
from tests.simulation.test_led_anew import (
    PARTITIONS,
    SHARDS,
    TOPIC,
    lead_anew,
    on_spread_stage,
    shard_of,
    shown,
)

A_MOMENT_SECONDS = 0.000_01
A_WHILE_SECONDS = 2.0


def first_partition(stage: Stage) -> HostedPartition:
    """The partition `spread-0`, as it is led now."""
    return stage.broker.hosted.topics[TOPIC].partitions[0]


async def until_appended(partition: HostedPartition, next_offset: int) -> None:
    """Wait until the partition's journal has messages up to here, whether or not they are written."""
    while partition.state.next_offset < next_offset:
        await asyncio.sleep(A_MOMENT_SECONDS)


@contextlib.contextmanager
def stuck(journal: Journal) -> Iterator[None]:
    """The journal writes nothing meanwhile: its entries wait, as on a full disk."""
    commit = journal._commit
    with mock.patch.object(commit, "_may_write", return_value=False):
        yield
    commit._flush()


def test_damage_that_the_last_copy_finds_does_not_keep_the_shard_from_closing() -> None:
    async def scene(stage: Stage) -> None:
        partition, shard = first_partition(stage), shard_of(stage, TOPIC)
        sending = asyncio.ensure_future(stage.plain.send("spread-0", [1], 0))
        await until_appended(partition, 1)
        damage = DamagedLog("a batch is damaged")
        with (
            mock.patch.object(partition.copier, "_copy_batches", side_effect=damage),
            mock.patch.object(stopping.log, "error") as told,
        ):
            await stage.in_broker(stage.broker.shards.close(shard))
        assert partition.failure is damage
        assert told.call_count == 1
        await stage.in_broker(stage.broker.shards.lead(shard))
        await sending
        assert (await shown(stage))[0] == [1]

    on_spread_stage(scene)


def test_a_damaged_partition_writes_what_it_accepted_before_another_one_opens_its_files() -> None:
    """Otherwise both would write their entries to the same place."""

    async def scene(stage: Stage) -> None:
        partition, shard = first_partition(stage), shard_of(stage, TOPIC)
        with stuck(partition.journal):
            sending = asyncio.ensure_future(stage.plain.send("spread-0", [1], 0))
            await until_appended(partition, 1)
            partition.fail(DamagedLog("a batch is damaged"))
            closing = asyncio.ensure_future(stage.in_broker(stage.broker.shards.close(shard)))
            leading = asyncio.ensure_future(stage.in_broker(stage.broker.shards.lead(shard)))
            await asyncio.sleep(A_WHILE_SECONDS)
        await asyncio.gather(closing, leading)
        await stage.plain.send("spread-0", [2], 0)
        await sending
        await asyncio.sleep(A_WHILE_SECONDS)
        assert (await shown(stage))[0] == [1, 2]

    on_spread_stage(scene)


def test_old_segments_are_deleted_before_another_leader_looks_for_them() -> None:
    """Otherwise it finds a file that is gone a moment later, and takes the log for damaged."""

    async def scene(stage: Stage) -> None:
        for value in range(30):
            await stage.plain.send("spread-0", [value], 0)
        trim = [{"name": TOPIC, "partitions": [{"partition_index": 0, "offset": 28}]}]
        await stage.remote.ask(ApiKey.DELETE_RECORDS, 1, {"topics": trim, "timeout_ms": 1_000})
        partition = first_partition(stage)
        before = list_directory(partition.log.directory)
        await stage.in_broker(stage.broker.shards.close(shard_of(stage, TOPIC)))
        kept = [segment.path for segment in partition.log.kept_segments()]
        assert list_directory(partition.log.directory) == kept
        assert len(kept) < len(before)

    on_spread_stage(scene)


def test_no_backup_is_made_of_a_shard_that_is_closed_while_the_backup_begins() -> None:
    """It would lack the journals of that shard's transactions and groups."""

    async def scene(stage: Stage) -> None:
        async def back_up() -> None:
            with mock.patch.object(stage.broker.snapshots, "_make") as made, pytest.raises(NoSnapshot):
                await stage.broker.snapshots.make()
            assert not made.called

        backing_up = asyncio.ensure_future(stage.in_broker(back_up()))
        await asyncio.sleep(0)
        await stage.in_broker(stage.broker.shards.close(0))
        await backing_up

    on_spread_stage(scene)


def test_what_administrators_ask_of_a_coordinator_that_leads_no_more_is_refused() -> None:
    """In a way that their clients understand: they look for the coordinator, and ask again."""

    async def scene(stage: Stage) -> None:
        for shard in range(SHARDS):
            await stage.in_broker(stage.broker.shards.close(shard))
        asked = {"transactional_ids": ["red/1"]}
        described = await stage.remote.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, asked)
        assert described.transaction_states[0].error_code == ErrorCode.NOT_COORDINATOR
        member = {"member_id": "m", "group_instance_id": None}
        left = await stage.remote.ask(ApiKey.LEAVE_GROUP, 3, {"group_id": "readers", "members": [member]})
        assert left.error_code == ErrorCode.NOT_COORDINATOR

    on_spread_stage(scene)


REQUESTS_THAT_WAIT: dict[str, tuple[ApiKey, int, dict[str, Any]]] = {
    "OffsetFetch": (ApiKey.OFFSET_FETCH, 5, {"group_id": "readers", "topics": None}),
    "OffsetDelete": (ApiKey.OFFSET_DELETE, 0, {"group_id": "readers", "topics": []}),
    "DeleteGroups": (ApiKey.DELETE_GROUPS, 2, {"groups_names": ["readers"]}),
}


@pytest.mark.parametrize("name", REQUESTS_THAT_WAIT)
def test_nobody_waits_for_offsets_that_only_the_next_leader_can_tell(name: str) -> None:
    """A commit was decided, and its APPLY finds no leader."""

    async def scene(stage: Stage) -> None:
        shards, journals = stage.broker.shards, stage.offsets_journals
        (offsets,) = [shard for shard in shards if shard.groups is stage.groups]
        partition = journals.partition_of("readers")
        await stage.producer.add_partitions(["a-0"])
        await stage.producer.send_offsets("readers", {"a-0": 7})
        decision = shards.coordinator_of("red/1").journal_of("red/1").journal
        with stuck(decision), mock.patch.object(journals, "settle", wraps=journals.settle) as settle:
            ending = asyncio.ensure_future(stage.producer.end(committed=True))
            while not partition.is_settling("readers"):
                await asyncio.sleep(A_MOMENT_SECONDS)
            asking = asyncio.ensure_future(stage.remote.ask(*REQUESTS_THAT_WAIT[name]))
            while not settle.called:
                await asyncio.sleep(A_MOMENT_SECONDS)
            closing = asyncio.ensure_future(stage.in_broker(shards.close(offsets.number)))
            while partition.failure is None:
                await asyncio.sleep(A_MOMENT_SECONDS)
        began = stage.now
        answer = await asking
        assert stage.now - began < 1
        errors = [answer.error_code] if name != "DeleteGroups" else [answer.results[0].error_code]
        assert errors == [ErrorCode.NOT_COORDINATOR]
        await closing
        await stage.in_broker(shards.lead(offsets.number))
        await ending
        assert await SimulatedConsumer(stage.remote, [], is_committed=True).committed("readers", "a-0") == 7

    on_spread_stage(scene)


def test_a_log_that_can_not_be_synced_ends_the_broker() -> None:
    """I10, also when its shard is closed."""

    async def scene(stage: Stage) -> None:
        await stage.plain.send("spread-0", [1], 0)
        failing, failure = stage.broker, WriteFailure("fdatasync: Input/output error")
        with (
            mock.patch.object(LogSegment, "sync", side_effect=failure),
            mock.patch.object(broker.log, "critical"),
            pytest.raises(WriteFailure),
        ):
            await stage.in_broker(failing.shards.close(shard_of(stage, TOPIC)))
        assert failing.failed.result() is failure

    on_spread_stage(scene)


def test_a_shard_is_led_only_when_it_is_closed_even_if_closing_it_was_given_up() -> None:
    """Otherwise two leaders would write to the same files."""

    async def scene(stage: Stage) -> None:
        partition, shard = first_partition(stage), shard_of(stage, TOPIC)
        with stuck(partition.journal):
            sending = asyncio.ensure_future(stage.plain.send("spread-0", [1], 0))
            await until_appended(partition, 1)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(A_WHILE_SECONDS):
                    await stage.in_broker(stage.broker.shards.close(shard))
            leading = asyncio.ensure_future(stage.in_broker(stage.broker.shards.lead(shard)))
            await asyncio.sleep(A_WHILE_SECONDS)
            assert not leading.done()
        await leading
        await stage.plain.send("spread-0", [2], 0)
        await sending
        assert (await shown(stage))[0] == [1, 2]

    on_spread_stage(scene)


def test_the_offsets_of_all_other_groups_expire_if_a_shard_is_closed_meanwhile() -> None:
    async def scene(stage: Stage) -> None:
        closing, *others = stage.broker.shards
        expired = []

        async def expire(number: int) -> Expired:
            if number == closing.number:
                await stage.broker.shards.close(number)
                closing.offsets.partitions[0].ensure_writable()
            expired.append(number)
            return Expired(0, 0)

        with contextlib.ExitStack() as patched:
            for shard in (closing, *others):
                work = partial(expire, shard.number)
                patched.enter_context(mock.patch.object(shard.offsets_retention, "apply", work))
            await stage.in_broker(stage.broker.shards.expire_offsets())
        assert expired == [shard.number for shard in others]

    on_spread_stage(scene)


def test_former_leaders_keep_no_files_open_and_no_drafts() -> None:
    """A deleted file takes its space until it is closed, and some objects are never collected."""

    async def scene(stage: Stage) -> None:
        await stage.producer.add_partitions(PARTITIONS)
        for name in PARTITIONS:
            await stage.producer.send(name, [1], 0)
            await stage.plain.send(name, [2], 0)
        recent = first_partition(stage).journal._options.recent
        for shard in range(SHARDS):
            await stage.in_broker(stage.broker.shards.close(shard))
        assert not recent._drafts
        opened = [path for path, _ in stage.machine.disk._open.values()]
        assert [path.name for path in opened if "_catalogue" not in path.parts] == ["lock"]
        for shard in range(SHARDS):
            await stage.in_broker(stage.broker.shards.lead(shard))
        await stage.producer.end(committed=True)
        assert await shown(stage) == [[2, 1]] * SHARDS

    on_spread_stage(scene)


@pytest.mark.parametrize("stuck_seconds", [A_WHILE_SECONDS, 30.0])
def test_an_end_is_in_order_only_if_a_shard_that_was_being_closed_is_closed(stuck_seconds: float) -> None:
    """Otherwise open transactions go on after a loss of power, without what that shard has lost."""

    async def scene(stage: Stage) -> None:
        partition = first_partition(stage)
        await stage.producer.add_partitions(PARTITIONS)
        for name in PARTITIONS:
            await stage.producer.send(name, [1], 0)
        commit = partition.journal._commit
        with mock.patch.object(commit, "_start_sync"), mock.patch.object(broker.log, "error"):
            closing = stage.broker.shards.close(shard_of(stage, TOPIC))
            half_closed = asyncio.ensure_future(stage.in_broker(closing))
            await asyncio.sleep(A_WHILE_SECONDS)
            stopping = asyncio.ensure_future(stage.machine.stop())
            await asyncio.wait([stopping], timeout=stuck_seconds)
        commit._flush()
        await stopping
        assert half_closed.done() == (stuck_seconds == A_WHILE_SECONDS)
        stage.machine.lose_power(Fate.LOST)
        await stage.machine.start()
        if stuck_seconds == A_WHILE_SECONDS:
            await stage.producer.end(committed=True)
        else:
            with pytest.raises(Refused, match=ErrorCode.TRANSACTION_ABORTABLE.name):
                await stage.producer.end(committed=True)
        first, *others = await shown(stage)
        assert others == [first] * len(others)

    on_spread_stage(scene)


def test_a_damaged_partition_does_not_lose_its_part_of_an_open_transaction_to_an_end_in_order() -> None:
    async def scene(stage: Stage) -> None:
        await stage.producer.add_partitions(PARTITIONS)
        for name in PARTITIONS:
            await stage.producer.send(name, [1], 0)
        first_partition(stage).fail(DamagedLog("a batch is damaged"))
        await stage.machine.stop()
        stage.machine.lose_power(Fate.LOST)
        await stage.machine.start()
        await stage.producer.end(committed=True)
        assert await shown(stage) == [[1]] * len(PARTITIONS)

    on_spread_stage(scene)


def test_settings_that_change_while_a_shard_is_led_anew_apply_to_it() -> None:
    async def scene(stage: Stage) -> None:
        hosted_topics, segment_bytes = stage.broker.hosted, 123_456
        open_again = hosted_topics.open_again

        async def change_meanwhile(is_wanted: Callable[[TopicIdPartition], bool]) -> list[HostedPartition]:
            opened = await open_again(is_wanted)
            object.__setattr__(stage.broker.settings, "topic_segment_bytes", segment_bytes)
            hosted_topics.settings_changed()
            return opened

        with mock.patch.object(hosted_topics, "open_again", change_meanwhile):
            await lead_anew(stage, shard_of(stage, TOPIC))
        assert {each.log.segment_bytes for each in hosted_topics.partitions()} == {segment_bytes}

    on_spread_stage(scene)


def test_participants_forget_what_is_over_however_often_leaders_change() -> None:
    async def scene(stage: Stage) -> None:
        for value in range(10):
            await stage.producer.add_partitions(PARTITIONS)
            for name in PARTITIONS:
                await stage.producer.send(name, [value], 0)
            await stage.producer.end(committed=value % 2 == 0)
            for shard in range(SHARDS):
                await lead_anew(stage, shard)
        assert await shown(stage) == [[0, 2, 4, 6, 8]] * SHARDS
        remembered = [len(known_transactions(each.state)) for each in stage.broker.shards.partitions()]
        assert max(remembered) <= 2  # the last, and the one before it

    on_spread_stage(scene)
