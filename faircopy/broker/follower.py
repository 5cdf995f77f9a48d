"""One broker that follows: it keeps copies of the leader's journals, and serves no clients.

It opens the journals that it has raw, waits for its leader at an address that the arbiter tells, and appends
what comes. It folds nothing but the catalogue, which says where files belong. As it makes no checkpoints, it
reclaims nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from faircopy.arbiter.directory_note import NOTE_NAME, decode_note
from faircopy.broker.copied_catalogue import CopiedCatalogue
from faircopy.broker.environment import Environment
from faircopy.broker.leadership import MemberOfASet, grade_of, locked_directory
from faircopy.broker.open_files import limit_open_files
from faircopy.catalogue.dynamic_settings import DynamicSettings
from faircopy.catalogue.journal import CATALOGUE_IDENTITY
from faircopy.catalogue.topics import Topic
from faircopy.errors import FaircopyError
from faircopy.journal.checkpoint import decode_journal_checkpoint
from faircopy.journal.journal import Journal
from faircopy.journal.options import Durability, JournalOptions
from faircopy.journal.segment import identity_in
from faircopy.loop.waiting import cancel
from faircopy.replication.following import Following, Needs
from faircopy.replication.handshake import Own, receive_leader
from faircopy.replication.link import Link
from faircopy.replication.messages import Marks
from faircopy.replication.options import link_address
from faircopy.replication.replica import Replica
from faircopy.replication.timing import Timing
from faircopy.settings.table import Settings
from faircopy.storage.clock import SteadyNote
from faircopy.storage.descriptors import DESCRIPTORS
from faircopy.storage.epochs import greatest_epoch, note_incarnation
from faircopy.storage.last_end import last_end, note_clean_end, note_running
from faircopy.storage.local_notes import LocalNotes
from faircopy.storage.paths import delete_tree, exists, list_directory
from faircopy.storage.reserve import Reserve
from faircopy.storage.space_watch import SpaceWatch
from faircopy.storage.steady_note import store_steady_note
from faircopy.wire.address import Address

SPACE_CHECK_SECONDS = 0.25
NOTE_SECONDS = 10.0
EARLY_LINKS_MAX = 8

log = logging.getLogger(__name__)


class Follower:
    """A follower from `start` to `stop`. If the disk can no longer be trusted, `failed` gets the error
    (I10).
    """

    def __init__(self, settings: Settings, environment: Environment, leadership: MemberOfASet) -> None:
        self.settings = settings
        self.environment = environment
        self.leadership = leadership
        self.loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[BaseException] = self.loop.create_future()
        self.address: Address | None = None
        self._following: Following | None = None
        self._early: list[Link] = []
        self._stop_listening: Callable[[], None] = lambda: None
        self._background: list[asyncio.Task[None]] = []
        self._last_marks: Marks | None = None
        self._has_deletions = asyncio.Event()

    # -- starting --------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Lock and open the data directory, and let the leader connect. Raises FaircopyError."""
        try:
            await self._open()
        except BaseException:
            self._stop_listening()
            await self.leadership.close()
            raise
        works = (self._watch_space(), self._note(), self._delete_topics())
        self._background = [self.loop.create_task(work) for work in works]

    async def _open(self) -> None:
        self.directory = await locked_directory(self.settings, self.leadership, self.environment.process_id())
        self.disk = self.environment.disk(self.loop)
        if self.environment.descriptors_max is not None:
            limit_open_files(
                self.environment.descriptors_max, EARLY_LINKS_MAX, DynamicSettings(self.settings),
                self.loop, self.disk, self._disk_failed,
            )  # fmt: skip
        self.space = SpaceWatch(Reserve(self.directory.path, self.settings.disk_reserve_bytes))
        self.store = self.environment.store(self.directory.state, self.loop)
        self.store.on_write_failure = self._disk_failed
        self.store.on_no_space = self.space.release_reserve
        self.notes = LocalNotes(self.store)
        await self._open_journals()
        self.address, self._stop_listening = await self.environment.listen(
            link_address(self.settings), lambda: Link(self._accept)
        )
        own = await self._join()
        needs = Needs(
            lambda link: receive_leader(link, own, self._newest_epoch),
            lambda: self.space.shortage is not None,
            self._take_marks,
            self.environment.clock.wall_ms,
        )
        self._following = Following(self.replica, needs, Timing())
        for link in self._early:
            self._following.accept(link)

    async def _open_journals(self) -> None:
        """Open raw what is there. Raises DamagedJournal, StorageFailure."""
        end = last_end(self.notes, self.environment.boot_id())
        if not end.is_clean:
            await self.disk.run(self.directory.sync_names)
        self._grade = grade_of(end, is_unclean=self.directory.is_unclean)
        self._options = self._journal_options(lost_power=not end.is_same_boot)
        self.catalogue = CopiedCatalogue(self.directory.journal, self.store)
        self.replica = Replica(self._open_journal, self._journal_moved)
        self._found = await self.disk.run(self._open_found)
        if CATALOGUE_IDENTITY in self._found:
            self.catalogue.follow(self._found[CATALOGUE_IDENTITY])
        self.directory.mark_clean()
        self.directory.upgrade()
        await note_running(self.notes, self.environment.boot_id(), is_synced=True)

    def _open_found(self) -> dict[bytes, Journal]:
        found = {}
        for topic in list_directory(self.directory.journal):
            for path in list_directory(topic):
                identity = identity_in(path)
                if identity is not None:
                    found[identity] = self._open_raw(path, identity)
        return found

    def _open_raw(self, path: Path, identity: bytes) -> Journal:
        journal = Journal(path, identity, self.disk, self.loop, self._options)
        journal.open_raw(*decode_journal_checkpoint(self.store.get("checkpoints", identity)))
        return journal

    def _journal_options(self, *, lost_power: bool) -> JournalOptions:
        return JournalOptions(
            Durability.FSYNC,
            self.settings.journal_segment_bytes,
            self.environment.new_salt,
            self._disk_failed,
            is_unclean=self.directory.is_unclean,
            space=self.space,
            lost_power=lost_power,
            on_moved=lambda identity: self.replica.note_moved(identity),
        )

    async def _join(self) -> Own:
        """Join the set with what was found. Raises RegistrationRefused, LeaseLost."""
        own = await self.leadership.follow(self.notes, self._grade, str(self.address))
        await note_incarnation(self.notes, max(greatest_epoch(self.notes), self._newest_epoch()))
        return own

    # -- following -------------------------------------------------------------------------------------------

    def _accept(self, link: Link) -> None:
        if self._following is not None:
            self._following.accept(link)
        elif len(self._early) < EARLY_LINKS_MAX:
            self._early.append(link)  # the leader may have heard of this life before its start is over
        else:
            link.abort()

    def _newest_epoch(self) -> int:
        """The newest epoch that this directory has heard of, or that the arbiter has told (B18)."""
        heard = decode_note(self.notes.get(NOTE_NAME)).epoch
        return max(heard, self.leadership.record.epoch)

    async def _open_journal(self, identity: bytes) -> Journal:
        """A journal that the leader names: opened already, or new."""
        found = self._found.pop(identity, None)
        if found is None:
            found = await self.disk.run(self._open_raw, self.catalogue.path_of(identity), identity)
        if identity == CATALOGUE_IDENTITY:
            self.catalogue.follow(found)
        return found

    def _journal_moved(self) -> None:
        if self._following is not None:
            self._following.journals_moved()

    def _take_marks(self, marks: Marks) -> None:
        self._last_marks = marks
        if any(journal.identity == CATALOGUE_IDENTITY for journal in marks.journals):
            self._has_deletions.set()

    async def _delete_topics(self) -> None:
        """Delete the files of topics whose deletion is durable (B11). In a new life, all that were ever
        deleted are looked for once: the life before may have been cut short.
        """
        while True:
            await self._has_deletions.wait()
            self._has_deletions.clear()
            for topic in self.catalogue.take_deleted(self.replica.mark_of(CATALOGUE_IDENTITY)):
                await self._delete(topic)

    async def _delete(self, topic: Topic) -> None:
        for number in range(topic.partitions):
            identity = topic.partition_id(number).identity
            self._found.pop(identity, None)
            await self.replica.delete(identity)
        roots = [root / topic.directory_name for root in (self.directory.journal, self.directory.log)]
        for root in filter(exists, roots):
            await self.disk.run(delete_tree, root)
            log.info("%s is deleted, with topic %s", root, topic.name)

    async def _watch_space(self) -> None:
        while True:
            was_short = self.space.shortage is not None
            self.space.looked(await self.disk.run(self.space.look))
            if self._following is not None and was_short != (self.space.shortage is not None):
                self._following.shortage_changed()
            await asyncio.sleep(SPACE_CHECK_SECONDS)

    async def _note(self) -> None:
        """Note the set's clock and its epoch now and then."""
        while True:
            await asyncio.sleep(NOTE_SECONDS)
            await self._note_marks()

    async def _note_marks(self) -> None:
        marks, self._last_marks = self._last_marks, None
        if marks is None:
            return
        await store_steady_note(self.notes, SteadyNote("", 0, marks.clock_ms, marks.clock_ms))
        note = decode_note(self.notes.get(NOTE_NAME))
        if marks.epoch > note.epoch:
            heard = note._replace(epoch=marks.epoch, in_sync=dict(marks.in_sync))
            await self.notes.write({NOTE_NAME: heard.encode()})
            await note_incarnation(self.notes, max(greatest_epoch(self.notes), marks.epoch))

    def _disk_failed(self, error: BaseException) -> None:
        """I10, as on a leader."""
        if not self.failed.done():
            log.critical("%s. The broker stops; restart it", error)
            self.directory.mark_unclean()
            self.failed.set_result(error)

    # -- stopping --------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Follow no longer, and note that the end was in order."""
        self._stop_listening()
        if self._following is not None:
            await self._following.close()
        await cancel(self._background)
        if not self.failed.done():
            try:
                for journal in self.replica.journals():
                    await journal.sync()
                await self._note_marks()
                await note_clean_end(self.notes, self.environment.process_id())
            except FaircopyError as error:
                log.error("stopping without a note, so the next start is one as after a crash: %s", error)
        self.disk.close()
        DESCRIPTORS.unlimit()
        self.store.close()
        self.directory.close()
        await self.leadership.close()

    async def give_up(self) -> None:
        """The lease is lost. No other process of this life writes."""
