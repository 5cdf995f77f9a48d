"""Plain tables: when to publish which cut of the logs as Parquet (docs/PLAIN_TABLES.md).

A cut is the vector of the next offsets at the tails of a table's partitions, at one tick of the loop. All
APPLYs of a transaction are appended in one tick, so each transaction lies wholly before or wholly after a
cut. The cut is sent to the publisher's process once its part of every partition is visible and durable.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Collection, Iterable
from pathlib import Path
from uuid import UUID

from faircopy.datalog.ranges import byte_ranges
from faircopy.errors import FaircopyError
from faircopy.hosting.hosted_topic import HostedTopic
from faircopy.hosting.hosted_topics import HostedTopics
from faircopy.journal.errors import JournalFull
from faircopy.journal.options import Durability
from faircopy.partition.hosted import HostedPartition
from faircopy.publish import names
from faircopy.publish.arrow import OFF, NoArrow
from faircopy.publish.client import Publisher, PublishError
from faircopy.publish.layout import Layout, TopicColumns
from faircopy.publish.requests import Chunk, Cut, Publish, Tidied, Tidy
from faircopy.publish.trimming import FOREVER_MS, Keep, Upkeep
from faircopy.storage.clock import Clock
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.expiry import Expired, FirstCheck
from faircopy.storage.paths import exists
from faircopy.storage.space_watch import SpaceWatch
from faircopy.storage.versioned_map import VersionedMap

log = logging.getLogger(__name__)

TICK_SECONDS = 0.05
TABLES_AT_ONCE = 8
VISIBLE_POLL_SECONDS = 0.002
RETRY_MS = 2_000
BROKEN_RETRY_MS = 60_000
TIDY_CHECK_MS = 1_000
TIDY_INTERVAL_MS = 60_000  # while rows or files wait until they are old enough to go
AS_THE_TOPIC = -2
DOOMED_PREFIX = "doomed-tables/"


class PlainTable:
    """One table: the topics that it has to hold, and how far each partition is published.

    `strangers` are topics that it can't hold, because it has rows of other topics with the same names.
    """

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.directory = directory
        self.topics: list[HostedTopic] = []
        self.strangers: set[UUID] = set()
        self.is_open = False
        self.next_offsets: dict[tuple[str, int], int] = {}
        self.due_ms = 0.0
        self.published_bytes = 0
        self.skipped = 0
        self.tidied: Upkeep | None = None
        self.first_tidying = FirstCheck(f"all rows of plain table {name}")
        self.tidy_due_ms = 0.0
        self.tidy_check_due_ms = 0.0

    def partitions(self) -> Iterable[HostedPartition]:
        """The partitions that can be published."""
        published = (topic for topic in self.topics if topic.topic.id not in self.strangers)
        return (each for topic in published for each in topic.partitions if each.failure is None)

    def first_offset(self, partition: HostedPartition) -> int:
        """The next offset to publish. It is above the published end if retention has overtaken it."""
        return max(self.next_offsets.get(partition.name, 0), partition.log.start_offset)

    @property
    def layout(self) -> Layout:
        """The columns that the table shall have."""
        typed = (topic for topic in self.topics if topic.config("plain.value.format") == "json")
        return Layout(
            tuple(
                TopicColumns(topic.topic.name, topic.config("plain.schema"), topic.config("plain.bad.values"))
                for topic in typed
            ),
            any(topic.config("plain.partition.by") == "day" for topic in self.topics),
        )

    @property
    def interval_ms(self) -> int:
        """The shortest publication interval among the table's topics."""
        return min(int(topic.config("plain.interval.ms")) for topic in self.topics)

    @property
    def max_bytes(self) -> int:
        """The smallest limit of bytes per publication among the table's topics."""
        return min(int(topic.config("plain.max.bytes")) for topic in self.topics)

    @property
    def grace_ms(self) -> int:
        """The longest grace among the table's topics."""
        return max(int(topic.config("plain.grace.ms")) for topic in self.topics)

    @property
    def shown_bytes(self) -> int:
        """Bytes that became visible since the start, in all partitions."""
        return sum(partition.log.shown_bytes for partition in self.partitions())

    @property
    def has_news(self) -> bool:
        """Whether anything is visible but not published."""
        return any(partition.log.end_offset > self.first_offset(partition) for partition in self.partitions())


class PlainTables:
    """All tables, the one publisher process, and the task that keeps the tables up to date."""

    def __init__(
        self,
        hosted: HostedTopics,
        catalogue: VersionedMap,
        disk: DiskPool,
        clock: Clock,
        directory: Path,
        durability: Durability,
        publisher: Publisher | None,
        space: SpaceWatch,
        is_whole: Callable[[], bool],
    ) -> None:
        """`is_whole()` says whether all partitions have a leader; if not, a cut might split a transaction.
        Without a publisher, the tables stay as they are, until a start that has one.
        """
        self._hosted = hosted
        self._catalogue = catalogue
        self._disk = disk
        self._clock = clock
        self._directory = directory
        self._space = space
        self._is_whole = is_whole
        self._must_sync = durability is Durability.OS
        self._publisher = publisher
        self._turns = asyncio.Semaphore(TABLES_AT_ONCE)
        self.tables: dict[str, PlainTable] = {}
        hosted.tables_are_off = self.are_off
        hosted.on_change = self._topic_changed
        for each in hosted.topics.values():
            self._topic_changed(each, exists=True)

    @property
    def are_off(self) -> bool:
        """Whether there is nobody who could write a table."""
        return self._publisher is None

    def ensure_on(self) -> None:
        """Raise NoArrow if there is nobody who could write a table."""
        if self.are_off:
            raise NoArrow(OFF)

    @property
    def _writer(self) -> Publisher:
        assert self._publisher is not None  # else nothing runs here
        return self._publisher

    # -- which topic is in which table -----------------------------------------------------------------------

    def _topic_changed(self, hosted: HostedTopic, exists: bool) -> None:
        for table in self.tables.values():
            if hosted in table.topics:
                table.topics.remove(hosted)
        is_wanted = hosted.config("plain.enabled") == "true" and not self._hosted.is_shared
        is_published = exists and is_wanted
        if is_published:
            name = table_name(hosted)
            table = self.tables.setdefault(name, PlainTable(name, self._directory / name))
            table.topics.append(hosted)
            if not table.is_open:
                table.due_ms = 0.0  # what stopped the table may be corrected now
            table.is_open = False
            table.tidied = None

    def doom(self, deleted: Collection[HostedTopic]) -> dict[str, bytes | None]:
        """Changes of the catalogue to write together with the deletion of topics, so that tables of which
        nobody is left are deleted too. Written separately, a crash in between would delete the table of a
        topic that still exists, or leave the table of a deleted one.
        """
        gone = {id(hosted) for hosted in deleted}
        names_of_tables = dict.fromkeys(map(table_name, deleted))
        return {
            DOOMED_PREFIX + name: b""
            for name in names_of_tables
            if name not in self.tables or all(id(each) in gone for each in self.tables[name].topics)
        }

    async def _drop_doomed(self) -> None:
        doomed = [key.removeprefix(DOOMED_PREFIX) for key in self._catalogue.scan(DOOMED_PREFIX)]
        dropped = []
        try:
            for name in doomed:
                await self._drop(name)
                dropped.append(name)
        finally:
            if dropped:
                await self._catalogue.transact({}, {DOOMED_PREFIX + name: None for name in dropped})
                for name in dropped:
                    if name in self.tables:
                        self.tables[name].is_open = False

    async def _drop(self, name: str) -> None:
        table = self.tables.get(name)
        if table is not None and not table.topics:
            del self.tables[name]
        # A topic that never had a table must not start the publisher.
        if any(exists(self._directory / each) for each in names.all_of(name)):
            await self._writer.drop_table(name, str(self._directory / name))

    # -- publishing ------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Publish whatever is due, forever."""
        while not self.are_off:
            await asyncio.sleep(TICK_SECONDS)
            try:
                await self._drop_doomed()
            except JournalFull:
                pass  # it is tried again, and they are as good as gone until then
            except PublishError as error:
                log.error("%s", error)
                await asyncio.sleep(RETRY_MS / 1000)
            # On a full disk, publishing waits: the remaining space is for what frees more.
            if self._is_whole() and self._space.shortage is None:
                await self._do(self._bring_up_to_date, self._is_due)
            if self._is_whole():
                await self._do(self._tidy, self._has_to_tidy)

    async def _do(
        self, step: Callable[[PlainTable], Awaitable[None]], is_due: Callable[[PlainTable], bool]
    ) -> None:
        """Do a step for all tables that need it. While the publisher works on one, others are prepared."""
        due = [table for table in self.tables.values() if table.topics and is_due(table)]
        await asyncio.gather(*(self._guarded(table, step) for table in due))

    def _is_due(self, table: PlainTable) -> bool:
        if not table.is_open:
            # Otherwise a table might be opened just before its deletion, and its topic be treated as a
            # stranger.
            is_doomed = self._catalogue.get(DOOMED_PREFIX + table.name) is not None
            return not is_doomed and self._clock.monotonic_ms() >= table.due_ms
        if not table.has_news:
            return False
        is_time = self._clock.monotonic_ms() >= table.due_ms
        return is_time or table.shown_bytes - table.published_bytes >= table.max_bytes

    async def _bring_up_to_date(self, table: PlainTable) -> None:
        if not table.is_open:
            await self._open(table)
        if table.topics and table.has_news:
            table.due_ms = self._clock.monotonic_ms() + table.interval_ms
            await self._publish(table)

    async def _guarded(self, table: PlainTable, step: Callable[[PlainTable], Awaitable[None]]) -> None:
        now_ms = self._clock.monotonic_ms()
        try:
            async with self._turns:
                await step(table)
        except (FaircopyError, OSError) as error:
            # Whatever went wrong, ask the table itself how far it is before sending anything again.
            table.is_open = False
            retry = not isinstance(error, PublishError) or error.retry
            table.due_ms = now_ms + (RETRY_MS if retry else BROKEN_RETRY_MS)
            log.log(logging.INFO if retry else logging.ERROR, "plain table %s: %s", table.name, error)

    async def _open(self, table: PlainTable) -> None:
        held = await self._writer.open_table(table.name, str(table.directory), table.layout)
        table.next_offsets = {
            (topic, partition): offset
            for topic, offsets in held.next_offsets.items()
            for partition, offset in offsets.items()
        }
        table.strangers = {
            hosted.topic.id
            for hosted in table.topics
            if held.topic_ids.get(hosted.topic.name, hosted.topic.id.hex) != hosted.topic.id.hex
        }
        for hosted in table.topics:
            if hosted.topic.id in table.strangers:
                log.error(
                    "plain table %s holds rows of another topic %s, which was deleted: the new one is not "
                    "published there. Give it another table (topic setting plain.table)",
                    table.name,
                    hosted.topic.name,
                )
        table.is_open = True

    async def _publish(self, table: PlainTable) -> None:
        if not self._is_whole():
            return
        shown_bytes = table.shown_bytes
        cut = [(partition, partition.state.next_offset) for partition in table.partitions()]
        await asyncio.gather(*(self._reached(partition, end) for partition, end in cut))
        parts = [await self._part(table, partition, end) for partition, end in cut]
        parts = [part for part in parts if part.end_offset > part.first_offset]
        published = await self._writer.publish(
            Publish(table.name, str(table.directory), tuple(parts), table.layout)
        )
        table.next_offsets |= {(part.topic, part.partition): part.end_offset for part in parts}
        table.published_bytes = shown_bytes
        if published.skipped_offsets:
            table.skipped += published.skipped_offsets
            log.error(
                "plain table %s: %d messages were deleted from their logs before they were published",
                table.name,
                published.skipped_offsets,
            )
        if published.dead_letters:
            log.warning(
                "plain table %s: %d messages do not fit plain.schema; they are in %s",
                table.name,
                published.dead_letters,
                table.directory.with_name(names.dead_letters(table.name)),
            )
        if published.skipped_records:
            log.warning(
                "plain table %s: %d records could not be decoded", table.name, published.skipped_records
            )

    # -- what tables keep ------------------------------------------------------------------------------------

    def _has_to_tidy(self, table: PlainTable) -> bool:
        now_ms = self._clock.monotonic_ms()
        if not table.is_open or now_ms < table.tidy_check_due_ms:
            return False
        table.tidy_check_due_ms = now_ms + TIDY_CHECK_MS
        return now_ms >= table.tidy_due_ms or self._upkeep(table) != table.tidied

    async def _tidy(self, table: PlainTable) -> None:
        if not table.topics:
            return
        upkeep = self._upkeep(table)
        tidied = await self._writer.tidy(Tidy(table.name, str(table.directory), upkeep))
        is_waiting = tidied.retired_files or any(keep.age_ms != FOREVER_MS for keep in upkeep.keeps)
        wait_ms = min(TIDY_INTERVAL_MS, upkeep.grace_ms) if is_waiting else math.inf
        table.tidy_due_ms = self._clock.monotonic_ms() + wait_ms
        table.tidied = upkeep
        tell_what_went(table, upkeep, tidied)

    def _upkeep(self, table: PlainTable) -> Upkeep:
        """What the table keeps: of all topics that it was made of and that still exist."""
        held = sorted({topic for topic, _ in table.next_offsets})
        found = [hosted for name in held if (hosted := self._hosted.topics.get(name)) is not None]
        kept = [hosted for hosted in found if hosted.topic.id not in table.strangers]
        return Upkeep(tuple(self._keep(hosted) for hosted in kept), table.grace_ms)

    def _keep(self, hosted: HostedTopic) -> Keep:
        """What a table keeps of a topic."""
        retention_ms = int(hosted.config("plain.retention.ms"))
        if retention_ms != AS_THE_TOPIC:
            return Keep(hosted.topic.name, {}, retention_ms)
        sound = (partition for partition in hosted.partitions if partition.failure is None)
        return Keep(hosted.topic.name, {each.name.partition: each.log.start_offset for each in sound})

    def unpublished_from(self, partition: HostedPartition) -> int | None:
        """The first offset that a table still waits for; None if none does, or if there is no room for it."""
        if self.are_off:
            return None  # as if the topic had no table: nobody knows whether it will ever be written
        for table in self.tables.values():
            if self._space.shortage is None and any(each is partition for each in table.partitions()):
                return table.next_offsets.get(partition.name, 0) if table.is_open else 0
        return None

    # -- cuts ------------------------------------------------------------------------------------------------

    async def _reached(self, partition: HostedPartition, end_offset: int) -> None:
        """Wait until everything below `end_offset` is visible and fsynced."""
        while partition.log.end_offset < end_offset:
            partition.ensure_sound()
            await asyncio.sleep(VISIBLE_POLL_SECONDS)
        if self._must_sync:
            await partition.journal.sync()

    async def _part(self, table: PlainTable, partition: HostedPartition, end_offset: int) -> Cut:
        first_offset = table.first_offset(partition)
        ranges = await byte_ranges(partition.log, self._disk, first_offset, end_offset)
        return Cut(
            partition.name.topic,
            partition.id.topic_id.hex(),
            partition.name.partition,
            first_offset,
            end_offset,
            tuple(Chunk(str(each.path), each.position, each.size) for each in ranges),
            tuple(
                (span.first_offset, span.last_offset, str(span.transaction))
                for span in partition.copier.spans.between(first_offset, end_offset)
            ),
        )

    async def stop(self) -> None:
        """Stop the publisher's process."""
        if self._publisher is not None:
            await self._publisher.stop()


def tell_what_went(table: PlainTable, upkeep: Upkeep, tidied: Tidied) -> None:
    """Say what a table has given up, and why."""
    limits = "; ".join(
        limit_of(keep) for keep in upkeep.keeps if keep.age_ms != FOREVER_MS or keep.first_offsets
    )
    if tidied.dropped_files:
        log.info(
            "plain table %s: %d files are dropped, whose rows are not kept (%s)",
            table.name, tidied.dropped_files, limits or "their topic is deleted",
        )  # fmt: skip
    is_by_age = any(keep.age_ms != FOREVER_MS for keep in upkeep.keeps)
    all_files = tidied.dropped_files + tidied.left_files
    table.first_tidying.note(Expired(tidied.dropped_files if is_by_age else 0, all_files))


def limit_of(keep: Keep) -> str:
    """What a table keeps of a topic, for the log."""
    if keep.age_ms == FOREVER_MS:
        return f"topic {keep.topic} keeps them for as long as its log does"
    return f"topic {keep.topic} has plain.retention.ms={keep.age_ms}"


def table_name(hosted: HostedTopic) -> str:
    """The table of a topic."""
    return hosted.config("plain.table") or hosted.topic.name
