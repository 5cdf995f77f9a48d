"""Mutants of the catalogue: what brokers share, and what is left of a topic that is deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from faircopy.catalogue.change import decode_change, encode_change
from faircopy.catalogue.journal import CatalogueJournal
from faircopy.catalogue.topics import NOTHING_ELSE, Topic, Topics
from faircopy.hosting.administration import TopicAdministration
from faircopy.journal.group_commit import Callback
from faircopy.journal.journal import Journal
from faircopy.journal.reading import Recovered
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.state_store import StateStore
from faircopy.storage.versioned_map import SortedEntries
from tests.mutants.registry import mutant, replaced


@mutant
def share_what_is_not_durable() -> Iterator[Any]:
    """I2: an entry of the catalogue is acknowledged and read at once."""
    real = CatalogueJournal.__init__

    def init(self: CatalogueJournal, journal: Journal, store: StateStore, disk: DiskPool) -> None:
        real(self, journal, store, disk)

        def when_durable(callback: Callback) -> None:
            Journal.when_durable(journal, lambda: None)
            journal._loop.call_soon(callback)

        journal.when_durable = when_durable  # type: ignore[method-assign]

    with replaced(CatalogueJournal, "__init__", init):
        yield


@mutant
def read_what_is_not_durable() -> Iterator[Any]:
    """I2: readers of the catalogue see what is appended, and may act by what a crash takes back."""
    with (
        replaced(CatalogueJournal, "get", lambda self, key: self._appended.get(key)),
        replaced(CatalogueJournal, "scan", lambda self, prefix: self._appended.scan(prefix)),
    ):
        yield


@mutant
def write_topics_one_after_another() -> Iterator[Any]:
    """A request for several topics is several writes: a crash leaves some of them."""
    real = Topics.write

    async def write(
        self: Topics,
        topics: Iterable[Topic] = (),
        *,
        deleted: Iterable[Topic] = (),
        also: Mapping[str, bytes | None] = NOTHING_ELSE,
    ) -> list[Topic]:
        stored = [made for topic in topics for made in await real(self, [topic])]
        for topic in deleted:
            await real(self, deleted=[topic], also=also)
        return stored

    with replaced(Topics, "write", write):
        yield


@mutant
def compare_no_versions() -> Iterator[Any]:
    """A write of the catalogue overwrites what its writer has not seen."""
    with replaced(SortedEntries, "ensure_versions", lambda self, expected: None):
        yield


@mutant
def bring_back_what_is_deleted() -> Iterator[Any]:
    """A start forgets deletions that came after the catalogue's checkpoint."""
    real = CatalogueJournal._fold_found

    def fold_found(self: CatalogueJournal, recovered: Recovered) -> None:
        change = decode_change(recovered.payload)
        left = {key: value for key, value in change.changes.items() if value is not None}
        payload = memoryview(encode_change(change._replace(changes=left)))
        real(self, recovered._replace(payload=payload))

    with replaced(CatalogueJournal, "_fold_found", fold_found):
        yield


@mutant
def leave_the_files_of_deleted_topics() -> Iterator[Any]:
    """A deletion that a crash has interrupted is not finished."""

    async def remove_leftovers(self: TopicAdministration) -> None:
        pass

    with replaced(TopicAdministration, "remove_leftovers", remove_leftovers):
        yield
