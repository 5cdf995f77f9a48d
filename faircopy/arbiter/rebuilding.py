"""A record that is lost, or too old, is made again from the directories of its replica set.

Only an operator does that: a start can't know whether a directory that it does not see has more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from faircopy.arbiter.backend import Attempt, Backend, Unanswered
from faircopy.arbiter.directory_note import DirectoryNote
from faircopy.arbiter.joining import Incarnation, Known, replica_of
from faircopy.arbiter.record import NOBODY, SetRecord, encode
from faircopy.arbiter.registration import BROKERS, INCARNATIONS, RECORD, version_of
from faircopy.errors import FaircopyError
from faircopy.storage.versioned_map import Versioned

EPOCHS_SKIPPED = 1_000
"""More than the number of elections that no directory has heard of."""


class CannotRebuild(FaircopyError):
    """The record is not made again from these directories."""


class Found(NamedTuple):
    """What a directory has. `epoch`: the greatest under which it was led."""

    path: str
    note: DirectoryNote
    epoch: int

    @property
    def newest_epoch(self) -> int:
        """The greatest epoch that the directory knows."""
        return max(self.epoch, self.note.epoch)


class Rebuilt(NamedTuple):
    """The record, and the life of its broker that goes with it. `loses`: what it may lose, if anything."""

    record: SetRecord
    broker: int
    life: Incarnation
    loses: str


def rebuilt(
    chosen: Found, others: Sequence[Found], known: Known, registered: Mapping[int, object]
) -> Rebuilt:
    """The record with the chosen directory as the only replica. Raises CannotRebuild."""
    note = chosen.note
    ensure_may_be_chosen(chosen, others, registered)
    if known.record is not None and known.record.set_id != note.set_id:
        raise CannotRebuild(
            f"the arbiter's record is of another set (id {known.record.set_id}), and {chosen.path} is of set "
            f"{note.set_id}: check --replica-set and --arbiter. If the other set is a mistake, delete its "
            f"keys at the arbiter first"
        )
    is_newest = known.record is not None and replica_of(note, known) is not None
    if known.record is not None and is_newest and known.record.epoch >= chosen.note.epoch:
        raise CannotRebuild(
            f"the arbiter's record fits {chosen.path}: nothing has to be rebuilt. Start its broker"
        )
    newest = known.newest_of(note.broker)
    is_older_copy = newest.number >= note.last and newest.token not in ("", *note.tokens)
    last_epoch = max(chosen.newest_epoch, known.record.epoch if known.record is not None else 0)
    record = SetRecord(
        note.set_id,
        (note.broker,),
        note.broker,
        NOBODY,
        last_epoch + EPOCHS_SKIPPED,
        {} if is_older_copy else {note.broker: note.last},
        frozenset() if is_older_copy else frozenset({note.broker}),
        left={note.broker: last_epoch} if is_older_copy else {},
    )
    life = Incarnation(max(newest.number, note.last), note.tokens[-1])
    loses = (
        f"{chosen.path} is an older copy (life {note.last} of broker {note.broker}; the arbiter knows "
        f"{newest.number}): all that was written since is lost, and open transactions are aborted"
        if is_older_copy
        else ""
    )
    return Rebuilt(record, note.broker, life, loses)


def ensure_may_be_chosen(chosen: Found, others: Sequence[Found], registered: Mapping[int, object]) -> None:
    """Raises CannotRebuild."""
    if not chosen.note.is_member:
        raise CannotRebuild(
            f"{chosen.path} belongs to no replica set: it makes the record when its broker is started"
        )
    if registered:
        raise CannotRebuild(
            f"broker {min(registered)} of the set is registered at the arbiter: stop it, or wait until its "
            f"lease is gone"
        )
    for other in others:
        if other.note.set_id == chosen.note.set_id and other.newest_epoch > chosen.newest_epoch:
            raise CannotRebuild(
                f"{other.path} has heard of epoch {other.newest_epoch}, and {chosen.path} only of "
                f"{chosen.newest_epoch}: choose the newer one with --from"
            )


async def write(backend: Backend, made: Rebuilt, entries: Mapping[str, Versioned]) -> None:
    """Write the record, unless anything of the set has changed since these entries were read. Raises
    CannotRebuild, StoreUnavailable.
    """
    life = f"{INCARNATIONS}{made.broker}"
    attempt = Attempt(
        {key: version_of(entries.get(key)) for key in (RECORD, life, f"{BROKERS}{made.broker}")},
        {RECORD: encode(made.record), life: json.dumps(made.life._asdict()).encode()},
    )
    try:
        revision = await backend.attempt(attempt)
    except Unanswered as error:
        raise CannotRebuild(
            f"the arbiter did not answer, so the record may be made or not: look again with `faircopy "
            f"replicas status` ({error})"
        ) from error
    if revision is None:
        raise CannotRebuild("the set has changed at the arbiter meanwhile: look again")
