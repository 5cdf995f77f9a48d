"""All shards of this process, and which of them is responsible for what."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from functools import partial

from faircopy.errors import FaircopyError
from faircopy.groups.coordinator import GroupCoordinator
from faircopy.groups.offsets_journals import OffsetsJournals, OffsetsPartition
from faircopy.hosting.checkpoints import FULL_DISK_PATIENCE_MS
from faircopy.hosting.hosted_topics import HostedTopics
from faircopy.journal.identity import OFFSETS_TOPIC_ID, TopicIdPartition
from faircopy.partition.participant import NotLed, Participant
from faircopy.partition.partition import Partition, participant
from faircopy.shard.leader_epochs import LeaderEpochs
from faircopy.shard.placement import Placement
from faircopy.shard.shard import Resources, Shard
from faircopy.storage.expiry import Expired, FirstCheck
from faircopy.transactions.commits import Commit
from faircopy.transactions.coordinator import TransactionCoordinator
from faircopy.transactions.finished import FinishedNumbers
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.order import by_rank
from faircopy.transactions.settlement import settle, settle_strays, unknown_producers
from faircopy.transactions.survival import Survival
from faircopy.transactions.transaction import Transaction

Row = tuple[str, int, tuple[Commit, Callable[[], None]]]
"""A group, a rank, and a commit with what applies it."""


class NotClosed(FaircopyError):
    """What a shard has accepted may not be durable yet."""


class Shards:
    """The shards of a data directory. This process leads them all, except while one changes hands."""

    def __init__(self, placement: Placement, epochs: LeaderEpochs, resources: Resources) -> None:
        self._placement = placement
        self._epochs = epochs
        self._resources = resources
        self._hosted: HostedTopics = resources.hosted
        self._administration = resources.administration
        self._changing = asyncio.Lock()
        self._half_applied: dict[int, list[Commit]] = {}
        self._may_have_unknown = False
        self._shards = [self._shard(number) for number in range(placement.shards)]
        self._first_look_at_ids = FirstCheck("all transactional ids")
        self._first_look_at_groups = FirstCheck("all offsets of all groups")
        self._administration.ensure_led = self._ensure_all_led

    def _shard(self, number: int) -> Shard:
        """A shard, not opened yet, in its newest epoch."""
        return Shard(
            number, self._epochs.of_shard(number), self._placement, self.participant, self._resources
        )

    def __iter__(self) -> Iterator[Shard]:
        """The shards that are led, in order."""
        return (shard for shard in self._shards if shard.is_led)

    @property
    def are_all_led(self) -> bool:
        """Whether every shard is led: only then are all transactions known, and to be seen whole."""
        return all(shard.is_led for shard in self._shards)

    def _ensure_all_led(self) -> None:
        if not self.are_all_led:
            raise NotLed("a shard has no leader now, so topics can't change: try again")

    # -- which is responsible for what -----------------------------------------------------------------------

    def coordinator_of(self, transactional_id: str) -> TransactionCoordinator:
        """The coordinator of a transactional id's transactions."""
        return self._shards[self._placement.shard_of_transactions(transactional_id)].coordinator

    def groups_of(self, group: str) -> GroupCoordinator:
        """The coordinator of a consumer group."""
        return self._shards[self._placement.shard_of_group(group)].groups

    def offsets_of(self, group: str) -> OffsetsJournals:
        """The journals that keep the offsets of a consumer group."""
        return self._shards[self._placement.shard_of_group(group)].offsets

    def shard_of(self, partition: TopicIdPartition) -> int:
        """The number of the shard that keeps a partition."""
        return self._placement.shard_of(partition)

    def participant(self, partition: TopicIdPartition) -> Participant:
        """The participant for a partition, in whatever shard it is."""
        if partition.topic_id == OFFSETS_TOPIC_ID:
            shard = self._shards[self._placement.shard_of(partition)]
            return participant(shard.offsets.partition(partition.partition))
        return participant(self._hosted.find_by_id(partition))

    # -- all of them -----------------------------------------------------------------------------------------

    def coordinators(self) -> list[TransactionCoordinator]:
        """The coordinators of transactions."""
        return [shard.coordinator for shard in self]

    def metadata_journals(self) -> list[MetadataJournal]:
        """All metadata journals."""
        return [home for shard in self for home in shard.journals.values()]

    def offsets_partitions(self) -> list[OffsetsPartition]:
        """All partitions of group offsets."""
        return [partition for shard in self for partition in shard.offsets.partitions]

    def partitions(self) -> list[Partition]:
        """All partitions, of group offsets and of topics."""
        return [*self.offsets_partitions(), *self._hosted.partitions()]

    # -- their life ------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Recover all journals: those of all shards side by side, then those of topics. Raises
        DamagedJournal, NoSpace.
        """
        await asyncio.gather(*(shard.open() for shard in self._shards))
        await self._hosted.open_all()

    def settle(self, survival: Survival) -> None:
        """After `open`: finish what was decided, and settle the rest. See `TransactionCoordinator.settle`."""
        settle(self.coordinators(), self.partitions(), survival)
        self._may_have_unknown = True

    def restore_groups(self) -> None:
        """Restore the groups that have members: their session timeouts start now."""
        for shard in self:
            shard.groups.restore()

    def close_groups(self) -> None:
        """Close all groups: requests that wait for them are answered."""
        for shard in self:
            shard.groups.close()

    def abort_expired(self) -> list[Transaction]:
        """Abort the transactions past their timeout, and fence their producers."""
        return [transaction for shard in self for transaction in shard.coordinator.abort_expired()]

    async def forget_idle(self) -> None:
        """Forget transactional ids that have been idle for too long. Partitions that can't be told now are
        told by their next leader, see `forget_gone`.
        """
        known = sum(len(home.table.producers) for home in self.metadata_journals())
        forgotten = await self._forget(each.forget_idle() for each in self.coordinators())
        self._first_look_at_ids.note(Expired(forgotten, known))

    async def forget_gone(self) -> None:
        """Forget members of joint groups that have done their work, as `forget_idle` does. After a start, or
        after other leaders, forget whatever else no coordinator knows.
        """
        await self._forget(each.forget_gone() for each in self.coordinators())
        if self._may_have_unknown and self.are_all_led:
            self._may_have_unknown = False
            await self._forget([self._unknown()])

    async def _unknown(self) -> set[int]:
        """The producer ids that partitions remember, and no coordinator knows, once that is durable."""
        homes = self.metadata_journals()
        sound = (partition for partition in self.partitions() if partition.failure is None)
        unknown = unknown_producers(homes, sound)
        if unknown:
            await asyncio.gather(*(home.journal.durable() for home in homes))
        return unknown

    async def _forget(self, forgetting: Iterable[Awaitable[set[int]]]) -> int:
        """Forget producers in all partitions. Returns how many there were."""
        producer_ids = set[int]().union(*await asyncio.gather(*forgetting))
        for partition in self.partitions():
            if partition.failure is None:
                partition.forget_producers(producer_ids)
        return len(producer_ids)

    async def forget_offsets_of_deleted(self) -> None:
        """Remove the offsets of deleted topics. Durable when this returns. Raises JournalFull."""
        for shard in self:
            await shard.offsets.forget_deleted()

    async def expire_offsets(self) -> None:
        """Remove the offsets that have expired. Raises JournalFull."""
        checked = []
        for shard in self:
            with contextlib.suppress(NotLed):  # it is closed meanwhile: its next leader removes them
                checked.append(await shard.offsets_retention.apply())
        self._first_look_at_groups.note(
            Expired(sum(each.gone for each in checked), sum(each.known for each in checked))
        )

    # -- one of them -----------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _change(self) -> AsyncIterator[None]:
        """Change one leader at a time, and no topics meanwhile. A failed write ends the broker (I10)."""
        async with (
            self._changing,
            self._administration.unchanged(),
            self._resources.stopping.if_write_fails(),
        ):
            yield

    async def close(self, number: int) -> None:
        """Stop leading a shard, in order: its requests are refused from now on. Waits if the disk is full.

        Raises StorageFailure.
        """
        async with self._change():
            await self._close(number)

    async def _close(self, number: int) -> None:
        """Close a shard. What its coordinator may have applied in some participants only, others must be
        told before they apply anything else, even if they are led again before the coordinator (G0).
        """
        shard = self._shards[number]
        await shard.close()
        self._half_applied[number] = shard.coordinator.unapplied()

    async def prepare_to_stop(self) -> None:
        """Make durable what the last checkpoints leave out. Raises NotClosed, JournalFull."""
        await self._finish_closing()
        # Nobody makes checkpoints of damaged partitions.
        damaged = (each for each in self.partitions() if each.failure is not None)
        await asyncio.gather(*(each.journal.sync() for each in damaged))

    async def _finish_closing(self) -> None:
        """Wait for shards that are being closed, or led anew. Raises NotClosed if that takes too long."""
        try:
            async with asyncio.timeout(FULL_DISK_PATIENCE_MS / 1000), self._change():
                for shard in self._shards:
                    if not shard.is_led:
                        await self._close(shard.number)
        except TimeoutError:
            raise NotClosed("a shard is still being closed") from None

    async def lead(self, number: int) -> None:
        """Lead a shard again, in a new epoch, once it is closed. Raises DamagedJournal, StorageFailure,
        EpochIsOfTheSet.
        """
        self._epochs.ensure_own()
        async with self._change():
            if self._shards[number].is_led:
                return
            await self._close(number)
            await self._epochs.raise_one(number)
            shard = self._shard(number)
            await shard.open()
            opened = await self._hosted.open_again(self._is_in(number))
            # Other shards are asked for their promises next, which must be durable by then.
            await asyncio.gather(
                *(each.journal.durable() for each in self.partitions() if each.state.prepared)
            )
            self._shards[number] = shard
            self._hosted.host_again(opened)
            self._meet(shard)

    def _is_in(self, number: int) -> Callable[[TopicIdPartition], bool]:
        return lambda partition: self.shard_of(partition) == number

    def _rows_of_half_applied(self, number: int) -> Iterator[Row]:
        """What the partitions of a shard must apply of commits whose coordinators have no successor yet."""
        is_there = self._is_in(number)
        for commit in (commit for commits in self._half_applied.values() for commit in commits):
            there = [each for each in commit.transaction.branches if is_there(each.partition)]
            if there:
                tell = partial(commit.apply_in, there, self.participant, FinishedNumbers())
                yield commit.group, commit.rank, (commit, tell)

    def _meet(self, shard: Shard) -> None:
        """A shard is led again: it and the others tell each other what they have missed. All in one tick, so
        that the next tick is a consistent cut.
        """
        others = [each for each in self.coordinators() if each is not shard.coordinator]
        reunions = [(coordinator, coordinator.reunion(self._is_in(shard.number))) for coordinator in others]
        for _, reunion in reunions:
            reunion.tell()
        promised = [(shard.coordinator, commit) for commit in shard.coordinator.settle(Survival.EVERYTHING)]
        promised += [
            (coordinator, commit) for coordinator, reunion in reunions for commit in reunion.decide()
        ]
        # In each group, missed commits were decided before promised ones.
        rows: list[Row] = list(self._rows_of_half_applied(shard.number))
        rows += [
            (each.commit.group, each.commit.rank, (each.commit, partial(coordinator.apply_again, each)))
            for coordinator, reunion in reunions
            for each in reunion.missed()
        ]
        rows += [
            (commit.group, commit.rank, (commit, partial(coordinator.go_on, commit)))
            for coordinator, commit in promised
        ]
        for rank, (commit, go_on) in by_rank(rows):
            commit.rank = rank
            go_on()
        if self.are_all_led:
            settle_strays(self.coordinators(), self.partitions())
            self._may_have_unknown = True
        self._half_applied.pop(shard.number, None)  # its coordinator knows them again
        shard.groups.restore()
