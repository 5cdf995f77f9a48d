"""Who lets a broker lead its data directory, and under which epoch: the directory itself, or an arbiter.

Without an arbiter, the lock of the directory is all that it takes, and the epoch is the number of starts.
With one, the broker is a member of a replica set: it waits until nobody else leads, joins with the directory
that it has locked, is elected in a new epoch, and may answer only while its lease is not in doubt.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from faircopy.arbiter.address import ArbiterOptions, arbiter_options
from faircopy.arbiter.directory_note import NOTE_NAME, Directory, DirectoryNote, decode_note
from faircopy.arbiter.joining import Applicant, RegistrationRefused
from faircopy.arbiter.membership import Elected, Membership
from faircopy.arbiter.record import Grade, SetRecord
from faircopy.broker.environment import Environment
from faircopy.broker.shipping import ShipsToFollowers
from faircopy.catalogue.journal import CATALOGUE_IDENTITY
from faircopy.errors import FaircopyError
from faircopy.journal.shipping import NOT_SHIPPED, Shipping
from faircopy.net.gate import Gate
from faircopy.replication.followers import Followers, Reachable
from faircopy.replication.handshake import Own
from faircopy.replication.led import Led
from faircopy.replication.life import Life
from faircopy.replication.options import ensure_can_share, link_address, secret_of
from faircopy.replication.timing import Timing
from faircopy.settings.table import BadSetting, Settings
from faircopy.storage.copied import note_copied
from faircopy.storage.data_directory import FORMAT, DataDirectory, DataDirectoryError, DirectoryInUse
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.epochs import greatest_epoch, incarnation, note_incarnation, raise_incarnation
from faircopy.storage.filesystem import network_file_system
from faircopy.storage.last_end import LastEnd
from faircopy.storage.local_notes import LocalNotes
from faircopy.storage.state_store import StateStore
from faircopy.transactions.survival import Survival
from faircopy.wire.address import parse_address

log = logging.getLogger(__name__)


LOCK_RETRY_SECONDS = 0.5
LOCK_TRIES_UNSAID = 3
"""A start says that it waits for the lock when it has tried so often: it may be in vain for a moment."""


class OfAReplicaSet(FaircopyError):
    """A directory of a replica set can't be started without its arbiter."""


class Start(NamedTuple):
    """What is said of a replica set for one start only. `makes_set`: the broker may make the set, with these
    `replicas`, of which it is the first; without any, it is the only one. `leaves_set`: its directory leaves
    the set for good.
    """

    makes_set: bool = False
    replicas: tuple[int, ...] = ()
    leaves_set: bool = False


NOTHING_SAID = Start()


class Leadership(Protocol):
    """What a broker asks before it leads, and while it does. `lost` is done once it must not go on."""

    lost: asyncio.Future[None]
    is_of_a_set: bool

    @property
    def gate(self) -> Gate | None:
        """What holds answers while the lease is in doubt."""

    async def until_turn(self) -> None:
        """Wait until the directory may be locked. May be called again."""

    async def take(self, notes: LocalNotes, grade: Grade, address: str) -> Elected:
        """Begin to lead the directory that is locked, under an epoch that no other life has."""

    def shipping(self, store: StateStore, disk: DiskPool, steady_ms: Callable[[], int]) -> Shipping:
        """How the journals come to other replicas. `steady_ms`: the set's steady clock."""

    async def settle(self) -> None:
        """What was open is settled, durably."""

    def about(self) -> dict[str, Any]:
        """Figures for people."""

    async def replicas(self) -> dict[str, Any] | None:
        """The state of the replica set; None if there is none."""

    async def close(self) -> None:
        """Let somebody else lead. The directory is unlocked."""


class LeadsAlone:
    """A broker without an arbiter."""

    gate = None
    is_of_a_set = False

    def __init__(self, data_dir: str, *, leaves_set: bool = False) -> None:
        self._data_dir = data_dir
        self._leaves_set = leaves_set
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def until_turn(self) -> None:
        """Nobody has to be waited for."""

    async def take(self, notes: LocalNotes, grade: Grade, address: str) -> Elected:
        """Take the next incarnation as the epoch. Raises OfAReplicaSet."""
        note = decode_note(notes.get(NOTE_NAME))
        if note.set_id and self._leaves_set:
            # As a restored backup: the set may go on, and give out the same epochs and producer ids.
            await note_copied(notes, NOTE_NAME)
            log.warning("%s has left its replica set for good (set id %s)", self._data_dir, note.set_id)
        elif note.set_id:
            raise OfAReplicaSet(
                f"{self._data_dir} belongs to a replica set (set id {note.set_id}, broker {note.broker}): "
                f"start it with --arbiter and --replica-set, which see to it that nobody else leads. Or let "
                f"it leave the set for good, with --alone: it has what the set has acknowledged, and can "
                f"come back only empty. A restored backup (`faircopy restore`) belongs to no set"
            )
        return Elected(await raise_incarnation(notes), grade)

    def shipping(self, store: StateStore, disk: DiskPool, steady_ms: Callable[[], int]) -> Shipping:
        """There are no other replicas."""
        return NOT_SHIPPED

    async def settle(self) -> None:
        """Nobody has to know."""

    def about(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    async def replicas(self) -> dict[str, Any] | None:
        """There is no set."""
        return None

    async def close(self) -> None:
        """Nothing is held."""


class MemberOfASet:
    """A broker that its replica set's arbiter lets lead, or follow."""

    is_of_a_set = True

    def __init__(
        self, settings: Settings, options: ArbiterOptions, environment: Environment, start: Start
    ) -> None:
        self._settings = settings
        self._options = options
        self._environment = environment
        self._who = Applicant(
            settings.replica_set, settings.node_id, settings.data_dir, start.makes_set, start.replicas
        )
        self._secret = b""
        self.gate = Gate(self._is_in_doubt)
        self._membership: Membership | None = None
        self._followers: Followers | None = None
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def _is_in_doubt(self) -> bool:
        return self._membership is None or self._membership.is_in_doubt

    async def follows(self) -> bool:
        """Whether the set's record has this broker as a follower. Waits for the arbiter. Raises BadSetting,
        DataDirectoryError, LeaseLost.
        """
        if self._membership is None:
            ensure_fenced(Path(self._settings.data_dir))
            self._membership = self._member()
        await self._membership.begin()
        self._ensure_ready()
        return self._membership.follows

    def _ensure_ready(self) -> None:
        """Raise BadSetting, before anything is done, unless the settings are those of such a set."""
        known = self._joined.known_record
        replicas = known.replicas if known is not None else self._who.replicas
        if len(replicas) > 1:
            ensure_can_share(self._settings)
            self._secret = secret_of(self._settings)
            if self._joined.follows or self._settings.replication_listener:
                link_address(self._settings)

    async def until_turn(self) -> None:
        """Wait until nobody leads the set. Raises BadSetting, DataDirectoryError, LeaseLost."""
        await self.follows()
        await self._joined.until_turn()

    def _member(self) -> Membership:
        """A membership whose arbiter was not asked yet."""
        environment, loop = self._environment, asyncio.get_running_loop()
        name = f"{self._who.broker}.{self._fresh_token()}"
        membership = Membership(
            environment.arbiter(self._options, self._who.set_name, name, loop),
            self._who,
            self._settings.arbiter_lease_ms / 1000,
            environment.clock,
            self._fresh_token,
        )
        membership.on_sure = self.gate.let_go
        membership.lost.add_done_callback(lambda _: self._lose())
        return membership

    def _fresh_token(self) -> str:
        return str(self._environment.new_id())

    def _lose(self) -> None:
        if not self.lost.done():
            self.lost.set_result(None)

    @property
    def _joined(self) -> Membership:
        assert self._membership is not None
        return self._membership

    async def take(self, notes: LocalNotes, grade: Grade, address: str) -> Elected:
        """Join the set, and wait for an election. Raises RegistrationRefused, LeaseLost."""
        directory = await self._join(notes, grade, address)
        member = self._joined
        elected = await member.lead()
        if elected.epoch <= directory.epoch:
            raise RegistrationRefused(
                f"replica set {self._who.set_name} has epoch {elected.epoch} at the arbiter, and "
                f"{self._who.path} was led under epoch {directory.epoch}: numbers would be given out again. "
                f"`faircopy replicas rebuild-record` says what the directory has"
            )
        note = decode_note(notes.get(NOTE_NAME)).heard(member.record)
        await notes.write({NOTE_NAME: note.encode()})
        await note_incarnation(notes, elected.epoch)
        log.info(
            "broker %d leads replica set %s in epoch %d", self._who.broker, self._who.set_name, elected.epoch
        )
        return elected

    async def follow(self, notes: LocalNotes, grade: Grade, link: str) -> Own:
        """Join the set as a follower, whose leader finds it at the address `link`. Returns who it is to the
        others. Raises RegistrationRefused, LeaseLost.
        """
        await self._join(notes, grade, "", link)
        return self._own

    async def _join(self, notes: LocalNotes, grade: Grade, address: str, link: str = "") -> Directory:
        """Begin a life. An empty directory lacks nothing that it has acknowledged."""

        async def store_note(note: DirectoryNote) -> None:
            await notes.write({NOTE_NAME: note.encode()})

        note, is_empty = decode_note(notes.get(NOTE_NAME)), not incarnation(notes)
        directory = Directory(note, is_empty, greatest_epoch(notes), Grade.DRAFTS if is_empty else grade)
        await self._joined.join(directory, store_note, address, socket.gethostname(), link)
        return directory

    @property
    def _own(self) -> Own:
        """Who this broker is to the others, in this life."""
        set_id, life = uuid.UUID(self._joined.record.set_id).bytes, Life(self._who.broker, self._joined.life)
        return Own(set_id, life, FORMAT, self._secret, self._environment.new_nonce)

    @property
    def record(self) -> SetRecord:
        """The newest record that is known."""
        return self._joined.record

    def shipping(self, store: StateStore, disk: DiskPool, steady_ms: Callable[[], int]) -> Shipping:
        """To the followers of the set, if it has any. Raises BadSetting."""
        record = self._joined.record
        followers = [each for each in record.replicas if each != self._who.broker]
        if not followers:
            return NOT_SHIPPED
        own, loop = self._own, asyncio.get_running_loop()
        led = Led(own.life, record)
        self._followers = Followers(
            own, led, followers, self._reach, disk, steady_ms, Timing(), loop, first=CATALOGUE_IDENTITY
        )
        return ShipsToFollowers(self._followers, store, disk)

    async def _reach(self, broker: int) -> Reachable:
        """A follower in the life that is registered. Raises LeaseLost, BadAddress."""
        registered = await self._joined.registered(broker)
        address = parse_address(registered.link)
        return Reachable(Life(broker, registered.incarnation), partial(self._environment.connect, address))

    async def settle(self) -> None:
        """Nothing that was acknowledged before is in danger any more. Raises LeaseLost."""
        await self._joined.settle()

    def about(self) -> dict[str, Any]:
        """The set, and the lease."""
        record = self._joined.record
        return {
            "replica_set": self._who.set_name,
            "set_id": record.set_id,
            "broker_id": self._who.broker,
            "epoch": record.epoch,
            "leads_since_ms": record.since_ms,
            "arbiter": str(self._options.address),
            "lease_in_doubt": self._joined.is_in_doubt,
        }

    async def replicas(self) -> dict[str, Any] | None:
        """The state of the replica set."""
        status = await self._joined.status()
        return status | {
            "arbiter": str(self._options.address),
            "lease_in_doubt": self._joined.is_in_doubt,
            "missing": missing_of(self._followers),
        }

    async def close(self) -> None:
        """Ship nothing more, and give the lease back."""
        if self._followers is not None:
            await self._followers.close()
        if self._membership is not None:
            await self._membership.close()


async def locked_directory(settings: Settings, leadership: Leadership, process_id: int) -> DataDirectory:
    """The data directory, opened and locked once it is the broker's turn. A member of a set waits for the
    lock, and never overrides it. Raises DataDirectoryError.
    """
    if not leadership.is_of_a_set:
        await leadership.until_turn()
        return DataDirectory(Path(settings.data_dir), settings.plain_readers, process_id)
    tries = 0
    while True:
        await leadership.until_turn()
        try:
            # The lease must be renewed meanwhile: this must not block.
            return DataDirectory(Path(settings.data_dir), settings.plain_readers, process_id, 0.0)
        except DirectoryInUse as error:
            tries += 1
            if tries == LOCK_TRIES_UNSAID:
                log.warning("%s", still_locked(settings, error))
        await asyncio.sleep(LOCK_RETRY_SECONDS)


def still_locked(settings: Settings, error: DirectoryInUse) -> str:
    """What a member of a set waits for, if nobody leads."""
    return (
        f"nobody leads replica set {settings.replica_set}, but process {error.holder} still has the lock of "
        f"{settings.data_dir}: it may be stopped, or hang. This start waits until it is unlocked"
    )


def leadership_of(settings: Settings, environment: Environment, start: Start = NOTHING_SAID) -> Leadership:
    """As the settings say. Raises BadSetting."""
    options = arbiter_options(settings)
    if options is None:
        if start.makes_set or start.replicas:
            raise BadSetting(
                "--new-set and --replicas make a replica set: give its --arbiter and its name, --replica-set"
            )
        return LeadsAlone(settings.data_dir, leaves_set=start.leaves_set)
    if start.leaves_set:
        raise BadSetting("--alone is for a broker without its replica set: leave --arbiter out")
    return MemberOfASet(settings, options, environment, start)


def missing_of(followers: Followers | None) -> list[dict[str, Any]]:
    """Which followers are missing, for how long, and why."""
    if followers is None:
        return []
    now = asyncio.get_running_loop().time()
    return [
        {"broker": broker, "for_ms": round((now - each.since) * 1000), "why": each.why}
        for broker, each in followers.missing.items()
    ]


def ensure_fenced(path: Path) -> None:
    """Raise DataDirectoryError for a file system on which two machines may write at a time: no arbiter fences
    a disk, and LMDB is not made for such file systems.
    """
    kind = network_file_system(path)
    if kind is not None:
        raise DataDirectoryError(
            f"{path} is on {kind}, where a broker that has lost its lease could still write: choose a "
            f"--data-dir on a disk of this machine, or on a volume that is attached to one machine at a time"
        )


def grade_of(end: LastEnd, *, is_unclean: bool) -> Grade:
    """How much of what the last life acknowledged is still in its directory."""
    if not is_unclean and not end.lost_power:
        return Grade.DRAFTS
    return Grade.DURABLE if end.is_synced else Grade.UNKNOWN


def survival_of(grade: Grade, *, is_clean: bool) -> Survival:
    """What recovery goes by. `is_clean`: the last life ended in order."""
    if grade is Grade.DRAFTS:
        return Survival.EVERYTHING if is_clean else Survival.WRITTEN
    return Survival.SYNCED if grade is Grade.DURABLE else Survival.UNKNOWN
