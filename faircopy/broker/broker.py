"""One broker: all parts put together, started in order and stopped in order."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import logging
import socket
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, ClassVar

from faircopy.api.routes import FLEXIBLE_FROM, ROUTES, advertised
from faircopy.arbiter.record import Grade
from faircopy.broker.environment import Environment
from faircopy.broker.leadership import Leadership, grade_of, leadership_of, locked_directory, survival_of
from faircopy.broker.open_files import limit_open_files
from faircopy.catalogue.dynamic_settings import DynamicSettings
from faircopy.catalogue.founding import cluster_id, ensure_new, found, is_founded, shape_of
from faircopy.catalogue.journal import CatalogueJournal
from faircopy.catalogue.producer_ids import ProducerIds, skip_ids
from faircopy.catalogue.topics import Topics
from faircopy.errors import FaircopyError
from faircopy.groups.members import HeldMemory
from faircopy.groups.offsets_journals import OFFSETS_TOPIC
from faircopy.hosting.administration import TopicAdministration
from faircopy.hosting.checkpoints import Checkpoints, HasCheckpoints
from faircopy.hosting.cuts import Cuts
from faircopy.hosting.hosted_topics import HostedTopics
from faircopy.hosting.plain_tables import PlainTables
from faircopy.hosting.recovery_summary import summarize, when_folded
from faircopy.hosting.retention import apply_retention
from faircopy.hosting.snapshots import CLAIM_MS, Snapshots
from faircopy.hosting.stopping import Stopping
from faircopy.journal.draft_space import DraftSpace, at_most_half_of_the_disk
from faircopy.journal.errors import DamagedJournal, JournalFull
from faircopy.journal.identity import OFFSETS_TOPIC_ID, TopicIdPartition
from faircopy.journal.journal import Journal
from faircopy.journal.options import Durability, JournalOptions
from faircopy.journal.recent import RecentDrafts
from faircopy.loop.background import repeat
from faircopy.loop.stall_watch import StallWatch
from faircopy.net.listeners import Listener, bind_all, parse_listeners
from faircopy.net.server import Server
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.name import PartitionName
from faircopy.partition.opening import PartitionResources
from faircopy.publish.client import Publisher
from faircopy.serving.dispatch import Dispatcher
from faircopy.serving.large_requests import LargeRequests
from faircopy.serving.route import HotRoute, Route
from faircopy.settings.table import Settings
from faircopy.shard.leader_epochs import LeaderEpochs
from faircopy.shard.placement import Placement
from faircopy.shard.shard import Resources
from faircopy.shard.shards import Shards
from faircopy.storage.clock import SteadyClock
from faircopy.storage.copied import is_copied, note_parted
from faircopy.storage.descriptors import DESCRIPTORS
from faircopy.storage.epochs import incarnation
from faircopy.storage.expiry import FirstCheck
from faircopy.storage.failures import WriteFailure
from faircopy.storage.last_end import LastEnd, last_end, note_clean_end, note_running
from faircopy.storage.local_notes import LocalNotes
from faircopy.storage.reserve import Reserve
from faircopy.storage.space_watch import SpaceWatch
from faircopy.storage.steady_note import steady_note, store_steady_note
from faircopy.transactions.connections import ProducerConnections
from faircopy.transactions.coordinator import TransactionCoordinator
from faircopy.transactions.numbers import Numbers
from faircopy.transactions.survival import Survival

log = logging.getLogger(__name__)

Bind = Callable[[], list[tuple[Listener, socket.socket]]]

STEADY_NOTE_INTERVAL_MS = 60_000
FORGET_INTERVAL_MS = 60_000
FORGET_GONE_INTERVAL_MS = 5_000
SPACE_CHECK_INTERVAL_MS = 250
EX_SOFTWARE = 70
TIME_SEARCHES_AT_ONCE = 2  # they may take long, and the other disk threads must be free for commits


class Broker:
    """A broker from `start` to `stop`. If the disk can no longer be trusted, `failed` gets the error (I10).

    A subclass may choose the types of its partitions (what they fold, when they ack), of its coordinator
    (what a commit waits for) and of its dispatcher, and the routes (what answers a request).
    """

    partition_type: ClassVar[type[HostedPartition]] = HostedPartition
    coordinator_type: ClassVar[type[TransactionCoordinator]] = TransactionCoordinator
    dispatcher_type: ClassVar[Callable[..., Dispatcher]] = Dispatcher
    routes: ClassVar[Mapping[int, Route | HotRoute]] = ROUTES

    def __init__(
        self,
        settings: Settings,
        environment: Environment | None = None,
        *,
        repairs: bool = False,
        leadership: Leadership | None = None,
    ) -> None:
        """With `repairs`, entries of journals that do not fold are passed over, once and for all.
        `leadership` lets it lead; by default, that is what the settings say. Raises BadSetting.
        """
        self._passed_over: list[DamagedJournal] | None = [] if repairs else None
        self.settings = dataclasses.replace(settings)
        self.dynamic_settings = DynamicSettings(self.settings)
        self.environment = environment or Environment()
        self.loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[BaseException] = self.loop.create_future()
        self.leadership = leadership or leadership_of(self.settings, self.environment)
        self._bound: list[tuple[Listener, socket.socket]] = []
        self._publisher: Publisher | None = None
        self._background: list[asyncio.Task[None]] = []
        self._first_retention = FirstCheck("all messages of all partitions")

    # -- starting --------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Lock and open the data directory, recover, and accept clients. Raises FaircopyError."""
        try:
            await self.open(functools.partial(bind_all, parse_listeners(self.settings)))
            await self.server.serve(self._bound)
        except BaseException:
            for _, taken in self._bound:
                taken.close()
            await self.leadership.close()
            raise
        self.start_background()

    async def open(self, bind: Bind = list) -> None:
        """Lock and open the data directory, and recover. `bind` takes the addresses to listen on: first, or
        in a set once the directory is locked, as a former leader may have had them. Raises FaircopyError.
        """
        if not self.leadership.is_of_a_set:
            self._bound = bind()
        self.directory = await locked_directory(self.settings, self.leadership, self.environment.process_id())
        if self.leadership.is_of_a_set:
            self._bound = bind()
        self.disk = self.environment.disk(self.loop)
        if self.environment.descriptors_max is not None:
            limit_open_files(
                self.environment.descriptors_max, self.settings.connections_max,
                self.dynamic_settings, self.loop, self.disk, self._disk_failed,
            )  # fmt: skip
        self.space = SpaceWatch(Reserve(self.directory.path, self.settings.disk_reserve_bytes))
        self.store = self.environment.store(self.directory.state, self.loop)
        self.store.on_write_failure = self._disk_failed
        self.store.on_no_space = self.space.release_reserve
        self.notes = LocalNotes(self.store)
        if not incarnation(self.notes):
            ensure_new(self.directory, f"the state store {self.directory.state} is empty")
        end = last_end(self.notes, self.environment.boot_id())
        if not end.is_clean:
            await self.disk.run(self.directory.sync_names)
        await self._start_clock()
        grade = grade_of(end, is_unclean=self.directory.is_unclean)
        self.incarnation, grade = await self.leadership.take(self.notes, grade, self._address())
        self.shipping = self.leadership.shipping(self.store, self.disk, self.clock.steady_ms)
        options = self.shipping.applied_to(self._journal_options(lost_power=not end.is_same_boot))
        await self._open_catalogue(options)
        await self._make_parts(options)
        survival = await self._recover(grade, is_clean=end.is_clean)
        if survival.is_loss:
            # A loss may be forgotten only once its consequences are durable.
            for home in self.shards.metadata_journals():
                await home.journal.durable()
            await self.leadership.settle()
        self.directory.mark_clean()
        is_synced = Durability(self.settings.durability) is Durability.FSYNC
        if end != LastEnd(is_clean=False, is_same_boot=True, is_synced=is_synced):
            # Not earlier: if this start is cut short, the next one must find everything as it was.
            await note_running(self.notes, self.environment.boot_id(), is_synced=is_synced)
        self._make_front()
        await self.administration.remove_leftovers()
        # A crash may have come after a topic was deleted and before its offsets were.
        await self._forget_offsets_of_deleted()
        # Before the first message, which must be refused if there is too little space.
        await self._look_for_space()
        if self._passed_over:
            await self._leave_behind(self._passed_over)
        # Last: the session timeouts of members start here.
        self.shards.restore_groups()

    async def _leave_behind(self, passed_over: list[DamagedJournal]) -> None:
        """Checkpoint everything, so that no later start meets what was passed over."""
        for each in passed_over:
            log.warning("passed over, as --repair says: %s", each)
        await self.checkpoint(all_changed=True)

    async def _start_clock(self) -> None:
        """Make the steady clock continue from where it was."""
        noted = steady_note(self.notes)
        self.clock = SteadyClock(self.environment.clock, self.environment.boot_id(), noted)
        await self._note_time()

    async def _note_time(self) -> None:
        await store_steady_note(self.notes, self.clock.note(2 * STEADY_NOTE_INTERVAL_MS))

    async def _forget_offsets_of_deleted(self) -> None:
        try:
            await self.shards.forget_offsets_of_deleted()
        except FaircopyError as error:
            log.error("the offsets of deleted topics stay until the next start: %s", error)

    def _address(self) -> str:
        """Where clients find the broker, for people who look at the replica set."""
        return self.settings.advertised_listeners or ", ".join(
            str(listener.address) for listener, _ in self._bound
        )

    async def _open_catalogue(self, options: JournalOptions) -> None:
        """Open the catalogue, or found it. What it holds is known before anything else is opened."""
        self.catalogue = CatalogueJournal.of(
            self.directory.journal, self.store, self.disk, self.loop, options, self.incarnation
        )
        await self.shipping.share([self.catalogue.journal])
        await self.disk.run(self.catalogue.open)
        self._catalogue_bytes = self.catalogue.bytes_since_checkpoint
        if not is_founded(self.catalogue):
            ensure_new(self.directory, f"the catalogue {self.catalogue.journal.directory} is empty")
            await found(self.catalogue, self.settings, self.environment.new_id())
        if is_copied(self.notes):
            await skip_ids(self.catalogue)
            await note_parted(self.notes)
        self.cluster_id = cluster_id(self.catalogue)
        self.dynamic_settings.load(self.catalogue)
        self.dynamic_settings.fix(shape_of(self.catalogue, self.settings))

    def _ensure_sound_state(self) -> None:
        """Raise DamagedState if damage in the state store concerns more than single partitions."""
        identities = tuple(partition.identity for partition in self.hosted.partitions())
        for record in self.store.damaged:
            if not record.key.startswith(identities):
                self.store.ensure_sound(record.key)

    def _journal_options(self, *, lost_power: bool) -> JournalOptions:
        """What all journals share."""
        self.draft_space = DraftSpace(
            self.settings.transaction_drafts_max_bytes,
            at_most_half_of_the_disk(self.settings.drafts_max_bytes, self.directory.path),
        )
        return JournalOptions(
            Durability(self.settings.durability),
            self.settings.journal_segment_bytes,
            self.environment.new_salt,
            self._disk_failed,
            RecentDrafts(self.settings.recent_drafts_max_bytes),
            self.directory.is_unclean,
            space=self.space,
            lost_power=lost_power,
            on_bug=self._bug_found,
            passed_over=self._passed_over,
            draft_space=self.draft_space,
        )

    async def _make_parts(self, options: JournalOptions) -> None:
        placement = Placement(
            self.settings.shards, self.settings.metadata_journals, self.settings.offsets_partitions
        )
        epochs = LeaderEpochs(
            self.notes, placement, self.incarnation, is_of_a_set=self.leadership.is_of_a_set
        )
        await epochs.raise_all()
        stopping = Stopping(self._disk_failed)
        self.producer_ids = ProducerIds(self.catalogue, self.settings.producer_id_block)
        stored = Topics(self.catalogue, self.environment.new_id)
        resources = self._partition_resources(options, stopping)
        self.hosted = HostedTopics(
            stored, self.directory, self.settings, resources, stopping, epochs.of_partition
        )
        self.administration = TopicAdministration(
            stored, self.hosted, self.directory, self.settings, resources, stopping, self.producer_ids
        )
        self.dynamic_settings.on_change = self.hosted.settings_changed
        self.producer_connections = ProducerConnections()
        self.shards = Shards(placement, epochs, self._resources(options, stopping))

    def _partition_resources(self, options: JournalOptions, stopping: Stopping) -> PartitionResources:
        """What all partitions of topics use."""
        return PartitionResources(
            self.store, self.disk, self.loop, self.clock.steady_ms, options, self.partition_type,
            stopping.stop, self.shipping,
        )  # fmt: skip

    def _resources(self, options: JournalOptions, stopping: Stopping) -> Resources:
        """What all shards use."""
        return Resources(
            self.settings,
            self.directory.journal,
            self.store,
            self.disk,
            self.loop,
            self.clock,
            options,
            self.hosted,
            self.administration,
            self.producer_ids,
            Numbers(self.incarnation),
            self.producer_connections,
            HeldMemory(),
            lambda: self.environment.new_id().hex,
            self.coordinator_type,
            stopping,
            self.shipping,
        )

    async def _recover(self, grade: Grade, *, is_clean: bool) -> Survival:
        """Recover everything. Returns what was still there."""
        began_ms = self.clock.monotonic_ms()
        await self.shards.open()
        self._ensure_sound_state()
        homes, internal = self.shards.metadata_journals(), self.shards.offsets_partitions()
        folded = when_folded(self.shards.partitions(), homes, self._catalogue_bytes)
        survival = survival_of(Grade.UNKNOWN if self._passed_over else grade, is_clean=is_clean)
        self.directory.upgrade()
        self.shards.settle(survival)
        duration_ms = self.clock.monotonic_ms() - began_ms
        hosted = list(self.hosted.partitions())
        self.recovery = summarize(hosted, internal, homes, self.catalogue, folded, duration_ms)
        return survival

    def _make_front(self) -> None:
        self.checkpoints = Checkpoints(self._checkpointed, self.space, self.clock)
        self.snapshots = Snapshots(self)
        self.large_requests = LargeRequests(self.loop, self.disk, self.clock)
        self.time_searches = asyncio.Semaphore(TIME_SEARCHES_AT_ONCE)
        self.advertised = advertised(self.routes)
        self.dispatcher = self.dispatcher_type(self.routes, FLEXIBLE_FROM, self)
        self.server = Server(
            self.settings,
            self.clock,
            self.loop,
            self.disk,
            self.dispatcher.handle,
            self.producer_connections.over,
            self.leadership.gate,
        )
        self.stalls = StallWatch(self.loop, self.clock)
        self.cuts = Cuts(self.disk, self.clock, self.is_whole)
        self._publisher = self.environment.publisher(self.clock.steady_ms, self.settings.plain_idle_ms / 1000)
        self.plain_tables = PlainTables(
            self.hosted,
            self.catalogue,
            self.disk,
            self.clock,
            self.directory.plain,
            Durability(self.settings.durability),
            self._publisher,
            self.space,
            self.is_whole,
        )
        self.administration.goes_with = self.plain_tables.doom
        self.administration.after_delete = self._forget_offsets_of_deleted
        self.ready_ms = self.clock.monotonic_ms()

    async def _apply_retention(self) -> None:
        unpublished_from = self.plain_tables.unpublished_from
        bytes_max = self.settings.plain_unpublished_max_bytes
        self._first_retention.note(await apply_retention(self.hosted, unpublished_from, bytes_max))

    def is_whole(self) -> bool:
        """Whether all shards are led, so that nothing is missing."""
        return self.shards.are_all_led

    def journals(self) -> list[Journal]:
        """All journals of this broker."""
        homes, partitions = self.shards.metadata_journals(), self.shards.partitions()
        metadata = (home.journal for home in homes)
        return [self.catalogue.journal, *metadata, *(partition.journal for partition in partitions)]

    def name_of(self, partition: TopicIdPartition) -> PartitionName | None:
        """A partition's name, also of group offsets; None if its topic is deleted."""
        if partition.topic_id == OFFSETS_TOPIC_ID:
            return PartitionName(OFFSETS_TOPIC, partition.partition)
        return self.hosted.name_of(partition)

    # -- running ---------------------------------------------------------------------------------------------

    def start_background(self) -> None:
        """Start the background work."""
        settings = self.settings
        self.stalls.start()
        self._every(settings.checkpoint_interval_ms, lambda: self.checkpoint(all_changed=True))
        self._every(1_000, self._checkpoint_what_is_large)
        self._every(SPACE_CHECK_INTERVAL_MS, self._look_for_space)
        self._every(settings.transaction_abort_interval_ms, self._abort_expired)
        interval_ms = min(settings.transactional_id_expiration_ms, FORGET_INTERVAL_MS)
        self._every(interval_ms, self.shards.forget_idle)
        self._every(FORGET_GONE_INTERVAL_MS, self.shards.forget_gone)
        self._spawn(self.plain_tables.run())
        self._every(settings.retention_check_interval_ms, self._apply_retention)
        self._every(STEADY_NOTE_INTERVAL_MS, self._note_time)
        self._every(CLAIM_MS, self.snapshots.remove_abandoned)
        self._every(settings.offsets_retention_check_interval_ms, self.shards.expire_offsets)

    def _every(self, interval_ms: int, work: Callable[[], Awaitable[None]]) -> None:
        self._spawn(repeat(interval_ms, work, self._disk_failed))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._background.append(self.loop.create_task(work))

    async def checkpoint(self, *, all_changed: bool) -> None:
        """Checkpoint what has changed, or only what has changed a lot. Raises JournalFull at the end."""
        await self.checkpoints.make(1 if all_changed else self.settings.checkpoint_bytes)

    def _checkpointed(self) -> list[HasCheckpoints]:
        return [self.catalogue, *self.shards.partitions(), *self.shards.metadata_journals()]

    async def _checkpoint_what_is_large(self) -> None:
        # On a full disk, any checkpoint may free some space. That the disk is full was logged already.
        with contextlib.suppress(JournalFull):
            await self.checkpoint(all_changed=self.space.shortage is not None)

    async def _look_for_space(self) -> None:
        """Look at the disk, and at other replicas: make the reserve, and go on once there is space again."""
        self.space.elsewhere = self.shipping.shortage()
        self.space.looked(await self.disk.run(self.space.look))

    async def _abort_expired(self) -> None:
        for transaction in self.shards.abort_expired():
            log.warning(
                "transaction %s of %r is aborted: it was open for more than its timeout of %d ms",
                transaction.id, transaction.transactional_id, transaction.timeout_ms,
            )  # fmt: skip

    def _disk_failed(self, error: BaseException) -> None:
        """I10: after a failed write or fsync, nothing is known about the page cache; the broker must stop."""
        if not self.failed.done():
            log.critical(
                "%s. The broker stops, so that it acknowledges nothing that may be lost; restart it", error
            )
            self.directory.mark_unclean()
            self.failed.set_result(error)

    def _bug_found(self, error: Exception) -> None:
        """An entry does not fold. The state may be half changed: nothing may be written or answered by it."""
        log.critical(
            "a bug in faircopy, please report it: an entry of a journal does not fold (%s). Nothing of it is "
            "written. The broker ends at once; restart it: it goes on with what its journals hold",
            error,
            exc_info=error,
        )
        self.environment.end_process(EX_SOFTWARE)

    # -- stopping --------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stop accepting, checkpoint everything, and note that the end was in order. This takes as long as it
        needs: only after such an end do open transactions outlive a loss of power.

        Does not wait for space on a full disk: without checkpoints, the next start recovers as after a crash.
        If the disk fails meanwhile (`failed`), this may never return.
        """
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        self.stalls.stop()
        self.shards.close_groups()
        await self.plain_tables.stop()
        await self.server.close()
        await self.dispatcher.close()
        if not self.failed.done():
            try:
                self.shipping.ensure_whole()
                await self.shards.prepare_to_stop()
                await self.checkpoints.make_last()
                await self.disk.run(self._shrink_journals)
                await note_clean_end(self.notes, self.environment.process_id())
            except WriteFailure as error:
                self._disk_failed(error)
            except FaircopyError as error:
                log.error("stopping without the last checkpoints, so the next start must recover: %s", error)
        await self.shipping.close()
        self.disk.close()
        DESCRIPTORS.unlimit()
        self.store.close()
        self.directory.close()
        await self.leadership.close()

    async def give_up(self) -> None:
        """The lease is lost: end the publisher, and wait for its end, so that no process of this life can
        still write. This process must end then, or replace itself.
        """
        if self._publisher is not None:
            await self._publisher.kill()

    def _shrink_journals(self) -> None:
        """Release the reserved space of all journals, so that the next start need not read it. Blocks."""
        for partition in self.shards.partitions():
            if partition.failure is None:
                partition.journal.shrink()
        for home in self.shards.metadata_journals():
            home.journal.shrink()
        self.catalogue.journal.shrink()
