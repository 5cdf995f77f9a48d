"""Whether a broker may join a replica set with its directory, and what becomes of the record then.

A record is made once, with a set id that the directory has noted before. From then on, a directory without
this id never comes in, and an empty one never leads: else a lost record, or a directory that is not attached,
would let somebody lead who lacks what the set has acknowledged.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from faircopy.arbiter.directory_note import Directory, DirectoryNote
from faircopy.arbiter.record import NOBODY, Grade, SetRecord
from faircopy.errors import FaircopyError


class RegistrationRefused(FaircopyError):
    """A broker can't join the replica set with this id and this directory."""


class Incarnation(NamedTuple):
    """A broker's newest life. `token` was made for it when it was asked for."""

    number: int
    token: str


NEVER_LIVED = Incarnation(0, "")
FIRST_LIFE = 1


class Applicant(NamedTuple):
    """A broker that wants to join. `path`: of its directory, for people. `makes_set`: it may make the set.
    `replicas`: of a set that it makes, with itself as the first; empty if it is the only one, or if there is
    a set by now.
    """

    set_name: str
    broker: int
    path: str
    makes_set: bool
    replicas: tuple[int, ...] = ()


class Known(NamedTuple):
    """What the arbiter knows: the record, if any, the newest life of each broker that has lived, and which
    brokers live now.
    """

    record: SetRecord | None
    newest: Mapping[int, Incarnation]
    living: Collection[int] = ()

    def newest_of(self, broker: int) -> Incarnation:
        """A broker's newest life; number 0 if there was none."""
        return self.newest.get(broker, NEVER_LIVED)


def joined(who: Applicant, directory: Directory, known: Known) -> SetRecord:
    """The record once the broker's next life has joined. The directory's note has the id of a new set.
    Raises RegistrationRefused.
    """
    if known.record is None:
        return founded(who, directory, known)
    record = known.record
    ensure_same_replicas(who, record)
    if is_follower(who.broker, record):
        ensure_follows(who, directory, known)
        return record
    ensure_of_this_set(who, directory, record)
    former = replica_of(directory.note, known)
    if former is None:
        raise RegistrationRefused(of_another_life(who, directory.note, record, known))
    if former != who.broker:
        if who.broker in record.replicas:
            raise RegistrationRefused(
                f"broker {who.broker} of replica set {who.set_name} has a directory of its own, and "
                f"{who.path} is that of broker {former}: give each directory its own --broker-id"
            )
        record = record.move(former, who.broker)
    return record.join(who.broker, known.newest_of(who.broker).number + 1, directory.grade)


def replica_of(note: DirectoryNote, known: Known) -> int | None:
    """Which replica this directory is: that whose newest life has begun on it (B10). None if it is none, as
    an older copy is.
    """
    assert known.record is not None
    for broker in known.record.replicas:
        newest = known.newest_of(broker)
        if newest.token in note.tokens or (newest == NEVER_LIVED and (broker, 0) == (note.broker, note.last)):
            return broker
    return None


def is_follower(broker: int, record: SetRecord) -> bool:
    """Whether a broker is a replica that can't be elected, and only follows. As yet nobody adds followers to
    the set of those in sync, so the first replica, which has made the set, is the only one that leads.
    """
    return broker in record.replicas and broker not in record.in_sync and broker not in record.left


def ensure_follows(who: Applicant, directory: Directory, known: Known) -> None:
    """Raise RegistrationRefused unless the set's leader can feed this directory: an empty one, that of this
    follower, or a copy of the leader's.
    """
    record, note = known.record, directory.note
    assert record is not None
    if directory.is_empty and not note.is_member:
        return
    ensure_of_this_set(who, directory, record)
    newest = known.newest_of(who.broker)
    if note.broker == who.broker:
        if newest != NEVER_LIVED and newest.token not in note.tokens:
            raise RegistrationRefused(
                f"{who.path} is an older copy of the directory of broker {who.broker}: attach the newest, "
                f"or let the broker begin with an empty directory"
            )
    elif note.broker != record.leader or record.leader not in known.living:
        # The directory itself must never follow: nobody else may lead.
        raise RegistrationRefused(
            f"{who.path} was the directory of broker {note.broker} of replica set {who.set_name}. If it is a "
            f"copy of the leader's directory, start broker {record.leader} with the directory itself first; "
            f"otherwise give broker {who.broker} an empty directory"
        )


def ensure_same_replicas(who: Applicant, record: SetRecord) -> None:
    """Raise RegistrationRefused if a start names other replicas than the set has."""
    if who.replicas and who.replicas != record.replicas:
        raise RegistrationRefused(
            f"replica set {who.set_name} has the replicas {brokers(record)}, and this start names "
            f"{', '.join(map(str, who.replicas))}: its replicas can't be changed yet. Leave --replicas out"
        )


def founded(who: Applicant, directory: Directory, known: Known) -> SetRecord:
    """The first record of a set. Raises RegistrationRefused."""
    note = directory.note
    if note.is_member:
        raise RegistrationRefused(
            f"the arbiter has no record of replica set {who.set_name}, which {who.path} belongs to (set id "
            f"{note.set_id}): check --arbiter and --replica-set. If the record is lost, `faircopy replicas "
            f"rebuild-record` makes it again from the set's directories"
        )
    if known.newest:
        raise RegistrationRefused(
            f"the arbiter has no record of replica set {who.set_name}, and yet it knows lives of its broker "
            f"{min(known.newest)}: the record is lost. `faircopy replicas rebuild-record` makes it again "
            f"from the set's directories. If none of these is left, give a new set another name"
        )
    if directory.is_empty and not who.makes_set:
        raise RegistrationRefused(
            f"there is no replica set {who.set_name} at the arbiter, and {who.path} is empty. If the set is "
            f"new, start its first broker with --new-set; otherwise check --arbiter, --replica-set, and "
            f"whether the volume of --data-dir is attached"
        )
    replicas = who.replicas or (who.broker,)
    if replicas[0] != who.broker:
        raise RegistrationRefused(
            f"there is no replica set {who.set_name} at the arbiter, and its first replica makes it: start "
            f"broker {replicas[0]} with --new-set first"
        )
    keeps = directory.grade is not Grade.UNKNOWN
    return SetRecord(
        note.set_id,
        replicas,
        who.broker,
        NOBODY,
        directory.epoch,
        {who.broker: FIRST_LIFE} if keeps else {},
        frozenset({who.broker} if directory.grade is Grade.DRAFTS else ()),
        left={} if keeps else {who.broker: directory.epoch},
    )


def ensure_of_this_set(who: Applicant, directory: Directory, record: SetRecord) -> None:
    """Raise RegistrationRefused if the directory does not belong to the set, or knows a newer record."""
    note = directory.note
    if note.set_id != record.set_id:
        raise RegistrationRefused(of_another_set(who, directory, record))
    if note.epoch > record.epoch:
        raise RegistrationRefused(
            f"the arbiter's record of replica set {who.set_name} has epoch {record.epoch}, and {who.path} "
            f"has heard of epoch {note.epoch}: the arbiter was restored from a backup, or is another one. "
            f"`faircopy replicas rebuild-record` says what each directory has"
        )


def of_another_set(who: Applicant, directory: Directory, record: SetRecord) -> str:
    """Why a directory without the set's id is refused."""
    if directory.note.is_member:
        return (
            f"{who.path} belongs to the replica set with the id {directory.note.set_id}, and set "
            f"{who.set_name} at this arbiter has the id {record.set_id}: check --data-dir, --arbiter and "
            f"--replica-set"
        )
    if directory.is_empty:
        return (
            f"replica set {who.set_name} has its data with broker {brokers(record)}, and {who.path} is "
            f"empty: is the volume of --data-dir attached? Further replicas can't be added yet"
        )
    return (
        f"replica set {who.set_name} has its data with broker {brokers(record)}, and {who.path} has data "
        f"that never belonged to the set: choose another --data-dir, or another name with --replica-set"
    )


def of_another_life(who: Applicant, note: DirectoryNote, record: SetRecord, known: Known) -> str:
    """Why a directory is refused on which no newest life has begun."""
    newest = known.newest_of(note.broker)
    if newest.number < note.last:
        return (
            f"broker {note.broker} has lived {note.last} times by its directory {who.path}, and "
            f"{newest.number} times by the arbiter, which was restored from a backup, or is another one: "
            f"`faircopy replicas rebuild-record` says what each directory has"
        )
    return (
        f"{who.path} is an older copy of a directory of replica set {who.set_name}: its last life was "
        f"number {note.last} of broker {note.broker}, and the arbiter knows newer ones of broker "
        f"{brokers(record)}. Attach the newest directory. If that is lost, `faircopy replicas "
        f"rebuild-record` says what each directory has"
    )


def brokers(record: SetRecord) -> str:
    """The brokers of a record, for people."""
    return ", ".join(map(str, record.replicas))
