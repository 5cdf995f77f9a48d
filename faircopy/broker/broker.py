"""One broker: all parts put together, started in order and stopped in order."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from faircopy.broker.catalog import Catalog
from faircopy.broker.commit_protocol import find_protocol
from faircopy.broker.dispatch import Dispatcher, Handler
from faircopy.broker.groups.coordinator import GroupCoordinator
from faircopy.broker.groups.members import GroupLimits
from faircopy.broker.handlers.cluster import ClusterHandlers
from faircopy.broker.handlers.configs import ConfigHandlers
from faircopy.broker.handlers.context import Body, BrokerAddress, Context, Message
from faircopy.broker.handlers.fetch import FetchHandler
from faircopy.broker.handlers.inspection import Inspection
from faircopy.broker.handlers.offsets import OffsetHandlers
from faircopy.broker.handlers.produce import ProduceHandler
from faircopy.broker.handlers.topics import TopicHandlers
from faircopy.broker.handlers.transactions import TransactionHandlers
from faircopy.broker.offsets_journals import OFFSETS_TOPIC, OffsetsJournals
from faircopy.broker.offsets_retention import OffsetsRetention
from faircopy.broker.plain_tables import PlainTables
from faircopy.broker.producer_ids import ProducerIds
from faircopy.broker.retention import apply_retention
from faircopy.broker.server import Server, bind
from faircopy.broker.settings import Settings, parse_address
from faircopy.broker.stall_watch import StallWatch
from faircopy.broker.surroundings import Surroundings
from faircopy.broker.transactions.coordinator import CoordinatorOptions
from faircopy.broker.transactions.metadata_journal import MetadataJournal, journal_identity
from faircopy.cluster.lmdb_store import LmdbStore
from faircopy.cluster.store import ABSENT, ClusterStore, take_block
from faircopy.cluster.topics import Topics
from faircopy.copier.partition import Partition, PartitionName
from faircopy.errors import FaircopyError
from faircopy.journal.journal import Durability, Journal, JournalOptions
from faircopy.journal.recent import RecentDrafts
from faircopy.publish.compaction import DAY_MS, Upkeep
from faircopy.storage.data_directory import DataDirectory
from faircopy.storage.files import WriteFailure, list_directory
from faircopy.wire.api_keys import ApiKey

log = logging.getLogger(__name__)

INCARNATION_COUNTER = "counters/incarnation"
CLEAN_KEY = "clean-shutdown"
BOOT_KEY = "boot"
SHAPE_KEY = "shape"
METADATA_DIRECTORY = "_metadata"
FORGET_INTERVAL_MS = 60_000
LAST_CHECKPOINTS_SECONDS = 20


class ChangedShape(FaircopyError):
    """A setting that is fixed for the life of a data directory was changed."""


class LostState(FaircopyError):
    """The state store of a data directory is gone."""


class Broker:
    """A broker from `start` to `stop`. `failed` is set to the error of a disk that can't be trusted any more (I10)."""

    def __init__(self, settings: Settings, surroundings: Surroundings | None = None) -> None:
        self.settings = settings
        self.surroundings = surroundings or Surroundings()
        self.clock = self.surroundings.clock
        self.loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[BaseException] = self.loop.create_future()
        self._background: list[asyncio.Task[None]] = []
        self._is_clean = False
        self._lost_power = False

    # -- starting ------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Lock and open the data directory, recover, and accept clients. Raises FaircopyError."""
        bound = bind(self.settings)
        try:
            await self.open()
            await self.server.serve(bound)
        except BaseException:
            bound.close()
            raise
        self.start_background()

    async def open(self) -> None:
        """Lock and open the data directory, and recover. Raises FaircopyError."""
        self.directory = DataDirectory(Path(self.settings.data_dir), self.surroundings.new_id)
        self.disk = self.surroundings.disk(self.loop)
        self.store = self.surroundings.store(self.directory.state, self.loop)
        self.store.on_write_failure = self._disk_failed
        self.cluster: ClusterStore = LmdbStore(self.store)
        await self._check_shape()
        self._is_clean = self.cluster.get(CLEAN_KEY) is not None
        booted, known = self.surroundings.boot_id().encode(), self.cluster.get(BOOT_KEY)
        self._lost_power = not self._is_clean and (not booted or known is None or known.value != booted)
        self.incarnation = (await take_block(self.cluster, INCARNATION_COUNTER, 1)).start + 1
        if self._is_clean:
            await self.cluster.transact({}, {CLEAN_KEY: None, BOOT_KEY: booted})
        self._make_parts()
        self._recover()
        self.directory.end_doubt()
        if self._lost_power:
            # Only when what follows from it is durable, the loss of power is forgotten.
            for journal in self.journals:
                await journal.journal.durable()
            await self.cluster.transact({}, {BOOT_KEY: booted})
        self._make_front()
        await self.catalog.remove_leftovers()
        # A crash may have come between the end of a topic and that of its offsets.
        await self._forget_offsets_of_deleted()

    async def _forget_offsets_of_deleted(self) -> None:
        try:
            await self.offsets.forget_topics_but(self.catalog.topics)
        except FaircopyError as error:
            log.error("offsets of deleted topics stay until the next start: %s", error)

    async def _check_shape(self) -> None:
        """The numbers of journals are fixed when the data directory is made: hashes depend on them."""
        wanted = {
            "metadata.journals": self.settings.metadata_journals,
            "offsets.partitions": self.settings.offsets_partitions,
        }
        found = self.cluster.get(SHAPE_KEY)
        if found is None:
            self._ensure_new()
            await self.cluster.transact({SHAPE_KEY: ABSENT}, {SHAPE_KEY: json.dumps(wanted).encode()})
            return
        for name, value in json.loads(found.value).items():
            if wanted[name] != value:
                raise ChangedShape(
                    f"{name} is {wanted[name]}, but {self.directory.path} was made with {value}, which can't be "
                    f"changed: "
                    f"set it to {value}, or choose another data directory"
                )

    def _ensure_new(self) -> None:
        """Raise LostState if the directory is not as new as its state store: else its topics would be taken for
        leftovers of deleted ones.
        """
        for part in (self.directory.journal, self.directory.log):
            if list_directory(part):
                raise LostState(
                    f"the state store {self.directory.state} is empty, and {part} is not: restore the data directory "
                    f"from a backup, or choose another with --data-dir"
                )

    def _ensure_sound_state(self) -> None:
        """Raise DamagedState if damage in the state store concerns more than single partitions."""
        identities = tuple(partition.identity for partition in self.catalog.partitions())
        for record in self.store.damaged:
            if not record.key.startswith(identities):
                self.store.ensure_sound(record.key)

    def _make_parts(self) -> None:
        protocol = find_protocol(self.settings.commit_protocol)
        options = JournalOptions(
            Durability(self.settings.durability),
            self.settings.journal_segment_bytes,
            self.surroundings.new_salt,
            self._disk_failed,
            RecentDrafts(self.settings.recent_drafts_max_bytes),
            self.directory.is_in_doubt,
        )
        root, loop = self.directory.journal, self.loop
        self.journals = [
            MetadataJournal(
                number,
                Journal(
                    root / METADATA_DIRECTORY / str(number),
                    journal_identity(number),
                    self.disk,
                    loop,
                    options,
                ),
                self.store,
                self.disk,
            )
            for number in range(self.settings.metadata_journals)
        ]
        self.offsets = OffsetsJournals(
            self.settings.offsets_partitions, root, self.store, self.disk, loop, options, self.clock
        )
        self.catalog = Catalog(
            Topics(self.cluster, self.surroundings.new_id),
            self.directory,
            self.store,
            self.disk,
            loop,
            self.settings,
            options,
            protocol.partition,
        )
        self.producer_ids = ProducerIds(self.cluster, self.settings.producer_id_block)
        self.coordinator = protocol.coordinator(
            self.journals,
            self._find_partition,
            self.producer_ids.next,
            self.incarnation,
            self.clock,
            loop,
            CoordinatorOptions(self.settings.transaction_max_timeout_ms, self.settings.transactional_id_expiration_ms),
        )

    def _find_partition(self, name: PartitionName) -> Partition | None:
        if name.topic == OFFSETS_TOPIC:
            return self.offsets.partitions[name.partition]
        return self.catalog.find(*name)

    def _recover(self) -> None:
        for journal in self.journals:
            journal.recover()
        self.offsets.recover()
        self.catalog.open_all()
        self._ensure_sound_state()
        partitions = [*self.offsets.partitions, *self.catalog.partitions()]
        self.coordinator.recover(partitions, is_clean=self._is_clean, lost_power=self._lost_power)

    def _make_front(self) -> None:
        self.groups = GroupCoordinator(
            GroupLimits(
                self.settings.group_initial_rebalance_delay_ms,
                self.settings.group_min_session_timeout_ms,
                self.settings.group_max_session_timeout_ms,
                self.settings.group_max_size,
            ),
            self.offsets,
            self.loop.call_later,
            lambda: int(self.clock.monotonic_ms()),
            lambda: self.surroundings.new_id().hex,
            self._has_partition,
        )
        fetch = FetchHandler(self.catalog, self.settings, self.disk, self.loop)
        produce = ProduceHandler(self.catalog, self.coordinator, self.producer_ids, self.clock)
        hot = {ApiKey.PRODUCE: produce.handle, ApiKey.FETCH: fetch.handle}
        dispatcher = Dispatcher(hot, self._handlers(), self.loop)
        self.server = Server(self.settings, self.clock, self.loop, self.disk, dispatcher.handle)
        self.stalls = StallWatch(self.loop, self.clock)
        self.plain_tables = PlainTables(
            self.catalog,
            self.cluster,
            self.disk,
            self.clock,
            self.directory.plain,
            Durability(self.settings.durability),
            self.surroundings.publisher(self.settings.plain_idle_ms / 1000),
            Upkeep(self.settings.plain_horizon_ms / DAY_MS, self.settings.plain_grace_ms / DAY_MS),
        )
        self.catalog.before_delete = self.plain_tables.doom
        self.catalog.after_delete = self._forget_offsets_of_deleted
        self.offsets_retention = OffsetsRetention(self.offsets, self.groups.has_members, self.settings, self.clock)

    def _has_partition(self, topic: str, partition: int) -> bool:
        return self.catalog.find(topic, partition) is not None

    def _handlers(self) -> dict[ApiKey, Handler]:
        cluster = ClusterHandlers(self.catalog, self.settings, self.directory.cluster_id, self.address)
        topics = TopicHandlers(self.catalog, self.settings, str(self.directory.log))
        configs = ConfigHandlers(self.catalog, self.settings)
        offsets = OffsetHandlers(self.catalog, self.disk, self.clock)
        groups = self.groups
        transactions = TransactionHandlers(
            self.catalog,
            self.offsets,
            self.coordinator,
            self.producer_ids,
            self.clock,
            groups.check_txn_offset_commit,
            self._has_partition,
        )
        return {
            ApiKey.METADATA: cluster.metadata,
            ApiKey.FIND_COORDINATOR: cluster.find_coordinator,
            ApiKey.DESCRIBE_CLUSTER: cluster.describe_cluster,
            ApiKey.CREATE_TOPICS: topics.create_topics,
            ApiKey.DELETE_TOPICS: topics.delete_topics,
            ApiKey.CREATE_PARTITIONS: topics.create_partitions,
            ApiKey.DELETE_RECORDS: topics.delete_records,
            ApiKey.DESCRIBE_LOG_DIRS: topics.describe_log_dirs,
            ApiKey.DESCRIBE_CONFIGS: configs.describe_configs,
            ApiKey.ALTER_CONFIGS: configs.alter_configs,
            ApiKey.INCREMENTAL_ALTER_CONFIGS: configs.incremental_alter_configs,
            ApiKey.LIST_OFFSETS: offsets.list_offsets,
            ApiKey.OFFSET_FOR_LEADER_EPOCH: offsets.offset_for_leader_epoch,
            ApiKey.INIT_PRODUCER_ID: transactions.init_producer_id,
            ApiKey.ADD_PARTITIONS_TO_TXN: transactions.add_partitions_to_txn,
            ApiKey.ADD_OFFSETS_TO_TXN: transactions.add_offsets_to_txn,
            ApiKey.TXN_OFFSET_COMMIT: transactions.txn_offset_commit,
            ApiKey.END_TXN: transactions.end_txn,
            ApiKey.LIST_TRANSACTIONS: transactions.list_transactions,
            ApiKey.DESCRIBE_TRANSACTIONS: transactions.describe_transactions,
            ApiKey.DESCRIBE_PRODUCERS: transactions.describe_producers,
            ApiKey.JOIN_GROUP: lambda request, context: groups.join_group(
                request, context.version, context.client_id, context.client_host
            ),
            ApiKey.SYNC_GROUP: without_context(groups.sync_group),
            ApiKey.HEARTBEAT: without_context(groups.heartbeat),
            ApiKey.LEAVE_GROUP: without_context(groups.leave_group),
            ApiKey.DESCRIBE_GROUPS: without_context(groups.describe_groups),
            ApiKey.LIST_GROUPS: without_context(groups.list_groups),
            ApiKey.DELETE_GROUPS: without_context(groups.delete_groups),
            ApiKey.OFFSET_COMMIT: without_context(groups.offset_commit),
            ApiKey.OFFSET_FETCH: without_context(groups.offset_fetch),
            ApiKey.OFFSET_DELETE: without_context(groups.offset_delete),
            ApiKey.INSPECT: Inspection(self).inspect,
        }

    def address(self) -> BrokerAddress:
        """Where clients are told to find this broker."""
        if self.settings.advertised_listener:
            host, port = parse_address(self.settings.advertised_listener, "advertised.listener")
            return BrokerAddress(self.settings.node_id, host, port)
        host, port = self.server.address
        return BrokerAddress(self.settings.node_id, "127.0.0.1" if host in ("0.0.0.0", "::") else host, port)

    # -- running -------------------------------------------------------------------------------------------------

    def start_background(self) -> None:
        """Begin what a broker does without being asked."""
        settings = self.settings
        self.stalls.start()
        self._every(settings.checkpoint_interval_ms, lambda: self.checkpoint(all_changed=True))
        self._every(1_000, lambda: self.checkpoint(all_changed=False))
        self._every(settings.transaction_abort_interval_ms, self._abort_expired)
        self._every(min(settings.transactional_id_expiration_ms, FORGET_INTERVAL_MS), self._forget_idle)
        self._spawn(self.plain_tables.run())
        self._every(settings.retention_check_interval_ms, lambda: apply_retention(self.catalog, self.clock))
        self._every(settings.offsets_retention_check_interval_ms, self.offsets_retention.apply)

    def _every(self, interval_ms: int, work: Callable[[], Awaitable[None]]) -> None:
        async def repeat() -> None:
            while True:
                await asyncio.sleep(interval_ms / 1000)
                try:
                    await work()
                except WriteFailure as error:
                    self._disk_failed(error)
                except FaircopyError as error:
                    log.error("%s", error)
                except Exception:
                    log.exception("work in the background failed; it is tried again")

        self._spawn(repeat())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._background.append(self.loop.create_task(work))

    async def checkpoint(self, *, all_changed: bool) -> None:
        """Checkpoint what has changed, or only what has changed a lot."""
        least = 1 if all_changed else self.settings.checkpoint_bytes
        for partition in [*self.catalog.partitions(), *self.offsets.partitions]:
            if partition.bytes_since_checkpoint >= least:
                await partition.checkpoint()
        for journal in self.journals:
            if journal.bytes_since_checkpoint >= least:
                await journal.checkpoint()

    async def _abort_expired(self) -> None:
        for transaction in self.coordinator.abort_expired():
            log.warning(
                "transaction %s of %r is aborted: it was open for more than its timeout of %d ms",
                transaction.id,
                transaction.transactional_id,
                transaction.timeout_ms,
            )

    async def _forget_idle(self) -> None:
        self.coordinator.forget_idle()

    def _disk_failed(self, error: BaseException) -> None:
        """I10: after a failed write or fsync nothing is known; stop serving, and restart from disk."""
        if not self.failed.done():
            log.critical("%s. The broker stops, so as not to acknowledge what may be lost; restart it", error)
            self.directory.note_doubt()
            self.failed.set_result(error)

    # -- stopping ------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stop accepting, checkpoint all, and note that the end was in order.

        Does not wait for a full disk to have space: without checkpoints the next start recovers, as after a crash. If
        the disk fails meanwhile (`failed`), this may never return.
        """
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        self.stalls.stop()
        self.groups.close()
        await self.plain_tables.stop()
        await self.server.close()
        if not self.failed.done():
            try:
                async with asyncio.timeout(LAST_CHECKPOINTS_SECONDS):
                    await self.checkpoint(all_changed=True)
                    await self.cluster.transact({}, {CLEAN_KEY: str(os.getpid()).encode()})
            except WriteFailure as error:
                self._disk_failed(error)
            except FaircopyError as error:
                log.error("stopping without the last checkpoints, so that the next start recovers: %s", error)
            except TimeoutError:
                log.error(
                    "stopping without the last checkpoints, so that the next start recovers: they take more than "
                    "%d s. Is the disk full?",
                    LAST_CHECKPOINTS_SECONDS,
                )
        self.disk.close()
        self.store.close()
        self.directory.close()


def without_context(handler: Callable[[Message], Awaitable[Body]]) -> Handler:
    """A handler that needs the request only."""

    def handle(request: Message, _context: Context) -> Awaitable[Body]:
        return handler(request)

    return handle
