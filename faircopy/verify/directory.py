"""The check of a whole data directory: its steps, and all their findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from faircopy.catalogue.journal import catalogue_directory
from faircopy.catalogue.topics import Topic, Topics, of_no_topic
from faircopy.groups.offsets_journals import OFFSETS_DIRECTORY
from faircopy.journal.identity import OFFSETS_TOPIC_ID, TopicIdPartition
from faircopy.publish.arrow import NoArrow, ensure_arrow
from faircopy.shard.shard import METADATA_DIRECTORY
from faircopy.storage.data_directory import DataDirectoryError, read_format
from faircopy.storage.paths import list_directory
from faircopy.storage.sealed import DamagedRecord, DamagedState
from faircopy.storage.state_store import StateStore
from faircopy.verify.findings import Advance, Finding
from faircopy.verify.loose_files import check_loose_journal, check_loose_log
from faircopy.verify.partition import PartitionCheck, load_checkpoint
from faircopy.verify.shared_journals import CatalogueCheck, OffsetsCheck, check_metadata_journal
from faircopy.verify.span_check import stored_spans
from faircopy.verify.state import StateCheck

if TYPE_CHECKING:  # at run time only where there are plain tables: these need pyarrow
    from faircopy.verify.log_rows import LogRows
    from faircopy.verify.plain_tables import TablePartition


class NamedCheck(NamedTuple):
    """One step of the check of a directory, with the name of what it checks."""

    name: str
    run: Callable[[], Iterator[Finding]]


class DirectoryCheck:
    """The check of a data directory that nobody changes meanwhile
    (`storage.data_directory.hold_unchanged`)."""

    def __init__(self, path: Path, advance: Advance = lambda _bytes: None) -> None:
        self.path = path.absolute()
        self._advance = advance
        self._partitions: dict[tuple[str, int], PartitionCheck] = {}

    def run(self, begin: Callable[[str], None] = lambda _name: None) -> Iterator[Finding]:
        """All findings; `begin(name)` is called before each step."""
        for check in self._checks():
            begin(check.name)
            yield from guarded(check, self.path)

    def _checks(self) -> Iterator[NamedCheck]:
        """The steps. The partitions are known when the state store and the catalogue have been read."""
        yield NamedCheck("format", self._format)
        state = StateCheck(self.path / "state.lmdb", self._advance)
        yield NamedCheck("state store", state.run)
        if state.store is None:
            yield from self._loose_checks()
            return
        catalogue = CatalogueCheck(catalogue_directory(self.path / "journal"), state.store, self._advance)
        yield NamedCheck("catalogue", catalogue.run)
        if not catalogue.is_sound:
            yield from self._loose_checks()
            return
        stored = Topics(catalogue.catalogue)
        topics = stored.load()
        yield NamedCheck("directories of topics", partial(self._unknown, [*topics, *stored.deleted()]))
        for number, directory in numbered(self.path / "journal" / METADATA_DIRECTORY):
            yield self._metadata(number, directory, state.store)
        for number, directory in numbered(self.path / "journal" / OFFSETS_DIRECTORY):
            yield self._offsets(number, directory, state.store)
        for topic in topics:
            for number in range(topic.partitions):
                yield self._partition(topic, number, state.store)
        for directory in list_directory(self.path / "plain"):
            yield self._plain(directory, topics, state.store)
        state.store.close()

    def _format(self) -> Iterator[Finding]:
        path = self.path / "format.json"
        try:
            read_format(path)
        except DataDirectoryError as error:
            yield Finding(path, None, str(error))

    def _unknown(self, known: list[Topic]) -> Iterator[Finding]:
        """Directories of topics that the catalogue does not know. It may have lost its last entry."""
        for path in of_no_topic((self.path / "journal", self.path / "log"), known):
            yield Finding(path, None, "belongs to no topic that the catalogue knows, present or deleted")

    def _metadata(self, number: int, directory: Path, store: StateStore) -> NamedCheck:
        return NamedCheck(
            f"transactions, journal {number}",
            lambda: check_metadata_journal(number, directory, store, self._advance),
        )

    def _offsets(self, number: int, directory: Path, store: StateStore) -> NamedCheck:
        check = OffsetsCheck
        return NamedCheck(
            f"group offsets, journal {number}",
            lambda: check(
                TopicIdPartition(OFFSETS_TOPIC_ID, number).identity, directory, store, self._advance
            ).run(),
        )

    def _partition(self, topic: Topic, number: int, store: StateStore) -> NamedCheck:
        place = Path(topic.directory_name) / str(number)
        identity = topic.partition_id(number).identity
        check = PartitionCheck(
            identity, self.path / "journal" / place, self.path / "log" / place, store, self._advance
        )
        self._partitions[topic.name, number] = check
        return NamedCheck(f"{topic.name}-{number}", check.run)

    def _plain(self, directory: Path, topics: list[Topic], store: StateStore) -> NamedCheck:
        """A table that can't be checked is a finding, too: nobody may take it for sound."""
        known = {topic.id.hex: topic for topic in topics}

        def open_log(partition: TablePartition) -> LogRows | None:
            topic = known.get(
                partition.topic_id
            )  # a deleted topic has no log, even if its name was used again
            check = self._partitions.get((topic.name, partition.partition)) if topic else None
            return (
                self._log_rows(topic, partition.partition, check.next_offset, store)
                if check and topic
                else None
            )

        def run() -> Iterator[Finding]:
            try:
                ensure_arrow("checking a plain table")
            except NoArrow as error:
                yield Finding(directory, None, f"not checked: {error}")
                return
            from faircopy.verify.plain_tables import PlainTableCheck

            yield from PlainTableCheck(directory, open_log, self._advance).run()

        return NamedCheck(f"plain table {directory.name}", run)

    def _log_rows(
        self, topic: Topic, number: int, end_offset: int | None, store: StateStore
    ) -> LogRows | None:
        identity = topic.partition_id(number).identity
        try:
            checkpoint = load_checkpoint(store, identity)
            spans = stored_spans(store, identity)
        except DamagedState:
            return None
        from faircopy.verify.log_rows import LogRows

        log = self.path / "log" / topic.directory_name / str(number)
        return LogRows((topic.name, topic.id.hex, number), log, checkpoint, spans, end_offset)

    def _loose_checks(self) -> Iterator[NamedCheck]:
        """The steps without a state store: each journal and each log on its own."""
        for root, check in (("journal", check_loose_journal), ("log", check_loose_log)):
            for topic in list_directory(self.path / root):
                for directory in list_directory(topic):
                    yield self._loose(directory, check)

    def _loose(self, directory: Path, check: Callable[[Path, Advance], Iterator[Finding]]) -> NamedCheck:
        return NamedCheck(str(directory.relative_to(self.path)), lambda: check(directory, self._advance))


def guarded(check: NamedCheck, path: Path) -> Iterator[Finding]:
    """The findings of one step; an unexpected error is a finding, too."""
    try:
        yield from check.run()
    except DamagedRecord:
        pass  # the check of the state store has already named it
    except Exception as error:  # whatever a damaged file causes, the other checks continue
        yield Finding(path, None, f"{check.name}: {error!r}")


def numbered(directory: Path) -> Iterator[tuple[int, Path]]:
    """The directories whose names are numbers, in numeric order."""
    found = [child for child in list_directory(directory) if child.name.isdigit()]
    yield from sorted((int(child.name), child) for child in found)
