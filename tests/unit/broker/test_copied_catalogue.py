"""What a follower reads of the catalogue: where files belong, and which are to be deleted, and when."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest

from faircopy.broker.copied_catalogue import CopiedCatalogue, UnknownJournal
from faircopy.catalogue.change import CatalogueChange, encode_change
from faircopy.catalogue.journal import CATALOGUE_IDENTITY, CatalogueJournal
from faircopy.catalogue.topics import Topic, Topics
from faircopy.journal.entry import Kind
from faircopy.journal.identity import METADATA_TOPIC_ID, OFFSETS_TOPIC_ID, TopicIdPartition
from faircopy.journal.options import Durability, JournalOptions
from faircopy.storage.system import mount
from tests.arbiter.test_session import in_virtual_time
from tests.simulation.loop import VirtualLoop
from tests.simulation.lying_disk import LyingDisk
from tests.simulation.store import Contents, SimulatedStore
from tests.simulation.threads import SimulatedThreads
from tests.unit.catalogue.opened import Opened

JOURNALS = Path("/journal")
SMALL_SEGMENT_BYTES = 500


class Bench:
    """A catalogue that is written, and a follower that reads its files as if they were copies."""

    def __init__(self) -> None:
        loop = cast(VirtualLoop, asyncio.get_running_loop())
        chosen = random.Random(1)
        self.store = SimulatedStore(Contents(), loop, chosen, lambda: None)
        options = JournalOptions(Durability.FSYNC, 1 << 20, lambda: 7, lambda error: None)
        threads = SimulatedThreads(loop, 2, chosen)
        self.leader = CatalogueJournal.of(JOURNALS, self.store, threads, loop, options, 1)
        self.leader.open()
        self.topics = Topics(self.leader, lambda: uuid.UUID(int=chosen.getrandbits(128), version=4))
        self.copied = CopiedCatalogue(JOURNALS, self.store)
        self.copied.follow(self.leader.journal)

    async def make(self, name: str) -> Topic:
        (topic,) = await self.topics.write([self.topics.new(name, 2, {})])
        return topic

    @property
    def end(self) -> int:
        return self.leader.journal.watermarks.appended


def run(test: Callable[[Bench], Awaitable[None]]) -> None:
    disk = LyingDisk(lambda: 0)
    for path in (JOURNALS, JOURNALS / "_catalogue"):
        disk.make_directory(path)

    async def main() -> None:
        await test(Bench())

    with mount(disk):
        in_virtual_time(main)


def test_where_each_journal_belongs() -> None:
    async def test(bench: Bench) -> None:
        path_of = bench.copied.path_of
        assert path_of(CATALOGUE_IDENTITY) == JOURNALS / "_catalogue" / "0"
        assert path_of(TopicIdPartition(METADATA_TOPIC_ID, 3).identity) == JOURNALS / "_metadata" / "3"
        offsets = TopicIdPartition(OFFSETS_TOPIC_ID, 4).identity
        assert path_of(offsets) == JOURNALS / "__consumer_offsets" / "4"
        for name in ("red", "blue"):
            topic = await bench.make(name)
            assert path_of(topic.partition_id(1).identity) == JOURNALS / topic.directory_name / "1"
        with pytest.raises(UnknownJournal, match="the catalogue has no topic with id 7070"):
            path_of(b"p" * 20)

    run(test)


def test_files_go_once_the_deletion_is_durable_in_the_set() -> None:
    async def test(bench: Bench) -> None:
        red, blue = await bench.make("red"), await bench.make("blue")
        before = bench.end
        await bench.topics.write(deleted=[red])
        after_red = bench.end
        await bench.topics.write(deleted=[blue])
        assert bench.copied.take_deleted(before) == []
        assert bench.copied.take_deleted(after_red - 1) == []
        assert [topic.id for topic in bench.copied.take_deleted(after_red)] == [red.id]
        assert [topic.id for topic in bench.copied.take_deleted(bench.end)] == [blue.id]
        assert bench.copied.take_deleted(bench.end) == []

    run(test)


def test_a_new_life_looks_for_what_was_ever_deleted() -> None:
    """Also if the leader has forgotten it since, or a checkpoint is all that is left of it."""

    async def test(bench: Bench) -> None:
        red = await bench.make("red")
        await bench.topics.write(deleted=[red])
        for _ in range(2):
            again = CopiedCatalogue(JOURNALS, bench.store)
            again.follow(bench.leader.journal)
            assert [topic.id for topic in again.take_deleted(bench.end)] == [red.id]
            await bench.leader.checkpoint()
        await bench.make("blue")
        again = CopiedCatalogue(JOURNALS, bench.store)
        again.follow(bench.leader.journal)
        with pytest.raises(UnknownJournal):
            again.path_of(red.partition_id(0).identity)

    run(test)


def test_what_has_no_file_yet_is_read_later(tmp_path: Path) -> None:
    """An entry that begins a segment is appended before a thread makes the file."""

    async def scene() -> None:
        with Opened(tmp_path, SMALL_SEGMENT_BYTES) as opened:
            journal = opened.catalogue.journal
            copied = CopiedCatalogue(tmp_path / "journal", opened.store)
            copied.follow(journal)
            await opened.catalogue.transact({}, {"settings/one": b"1"})
            large = CatalogueChange({}, {"settings/two": bytes(SMALL_SEGMENT_BYTES)})
            journal.append(Kind.CHANGE, encode_change(large), fold=lambda entry: entry)
            assert copied.take_deleted(0) == []
            assert list(copied.scan("")) == ["settings/one"]
            await journal.durable()
            assert copied.take_deleted(0) == []
            assert list(copied.scan("")) == ["settings/one", "settings/two"]

    asyncio.run(scene())
