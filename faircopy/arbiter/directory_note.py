"""What a data directory knows of its replica set and of its lives.

    local notes    replica-set    JSON of `DirectoryNote`; absent as long as the directory was in no set

Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from faircopy.arbiter.record import Grade, SetRecord, by_broker

NOTE_NAME = "replica-set"
NO_BROKER = -1


class DirectoryNote(NamedTuple):
    """What is noted. `set_id`: the set's, or the one that was asked for; empty before that. `is_member`: the
    arbiter has agreed. `broker`: the directory's, in its last life. `last`: that life. `tokens`: that of the
    last life, and those with which it has asked for others since. `epoch`, `in_sync`: the newest record that
    it has heard of.
    """

    set_id: str = ""
    is_member: bool = False
    broker: int = NO_BROKER
    last: int = 0
    tokens: tuple[str, ...] = ()
    epoch: int = 0
    in_sync: Mapping[int, int] = {}  # nobody changes it

    def heard(self, record: SetRecord) -> DirectoryNote:
        """The note, once this record is known."""
        return self._replace(epoch=record.epoch, in_sync=dict(record.in_sync))

    def encode(self) -> bytes:
        """The note as JSON."""
        return json.dumps(self._asdict(), sort_keys=True).encode()


def decode_note(value: bytes | None) -> DirectoryNote:
    """The note in this JSON; the first one if there is none. Raises ValueError, KeyError, TypeError."""
    if value is None:
        return DirectoryNote()
    stored = json.loads(value)
    return DirectoryNote(**stored)._replace(
        tokens=tuple(stored["tokens"]), in_sync=by_broker(stored["in_sync"])
    )


class Directory(NamedTuple):
    """A locked data directory, as its broker finds it before it joins a set. `is_empty`: no broker has ever
    run there. `epoch`: the greatest that it was led under, or the number of its starts if that is greater.
    """

    note: DirectoryNote
    is_empty: bool
    epoch: int
    grade: Grade
