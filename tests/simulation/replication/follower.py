"""A follower's process: it opens what the leader names, and lets itself be fed."""

from __future__ import annotations

from faircopy.journal.journal import Journal
from faircopy.journal.options import Durability, JournalOptions
from faircopy.replication.following import Following, Needs
from faircopy.replication.handshake import receive_leader
from faircopy.replication.life import Life as BrokerLife
from faircopy.replication.link import Link
from faircopy.replication.messages import Marks
from faircopy.replication.replica import Replica
from faircopy.storage.paths import list_directory
from tests.simulation.replication.copies import directory_of
from tests.simulation.replication.host import JOURNALS, Host
from tests.simulation.replication.register import Register

SEGMENT_BYTES = 9_000


class FollowerProcess:
    """One life of a follower."""

    def __init__(self, host: Host, register: Register) -> None:
        self._host = host
        self._register = register
        self._disk = host.threads()
        self._life = BrokerLife(host.number + 1, host.incarnation)
        self._opened: dict[bytes, Journal] = {}
        self.replica = Replica(self._open, self._moved)
        own = register.own(self._life, host.chosen)
        needs = Needs(
            lambda link: receive_leader(link, own, lambda: register.epoch_heard_by(host.number)),
            lambda: False,
            self._take_marks,
            lambda: int(host.loop.now * 1000),
        )
        self.following = Following(self.replica, needs, register.timing)

    async def run(self) -> None:
        """Until the life ends."""
        for directory in list_directory(JOURNALS):
            identity = bytes.fromhex(directory.name)
            self._opened[identity] = await self._open_raw(identity)
        self._host.has_lost_power = False
        self._host.switch.listen(self._host.number, lambda: Link(self.following.accept))
        self._register.lives[self._life.broker] = self._life
        await self._host.loop.create_future()

    async def _open(self, identity: bytes) -> Journal:
        return self._opened.pop(identity, None) or await self._open_raw(identity)

    async def _open_raw(self, identity: bytes) -> Journal:
        options = JournalOptions(
            Durability.FSYNC,
            SEGMENT_BYTES,
            lambda: self._host.chosen.getrandbits(64),
            self._fail,
            lost_power=self._host.has_lost_power,
            on_moved=self.replica.note_moved,
        )
        journal = Journal(directory_of(identity), identity, self._disk, self._host.loop, options)
        await self._disk.run(journal.open_raw, 0)
        return journal

    def _moved(self) -> None:
        self.following.journals_moved()

    def _fail(self, error: BaseException) -> None:
        raise AssertionError("the disk has failed") from error

    def _take_marks(self, marks: Marks) -> None:
        self._register.hear(self._host.number, marks.epoch)
