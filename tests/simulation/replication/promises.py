"""What the leader has appended, and what it has promised of that: to clients, or to itself."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from crc32c import crc32c

from faircopy.journal.entry import Entry
from faircopy.storage.system import Buffer

ByJournal = dict[bytes, int]
IsPresent = Callable[[int, int], bool]


class Content(NamedTuple):
    """What is the same of an entry in all replicas."""

    header: Entry
    payload_crc: int


def content_of(entry: Entry, payload: Buffer) -> Content:
    return Content(entry._replace(durable=0), crc32c(payload))


class Promises:
    """`durable`: up to where each journal was promised to be on the disks of all machines. `kept`: for each
    machine, up to where a journal was promised to be in its files, since it last lost power. `appended` has
    each entry that a leader has ever appended. `is_present` says whether a machine is still in this
    incarnation.
    """

    def __init__(self, machines: int, is_present: IsPresent) -> None:
        self.kept: list[ByJournal] = [{} for _ in range(machines)]
        self.durable: ByJournal = {}
        self._is_present = is_present
        self.appended: set[Content] = set()
        self.journals: list[bytes] = []

    @property
    def digest(self) -> str:
        """Two histories that differ have different ones."""
        told = repr((sorted(self.appended), self.kept, self.durable))
        return hashlib.sha256(told.encode()).hexdigest()

    def begin(self, journal: bytes) -> None:
        """A journal is made."""
        self.journals.append(journal)
        self.durable[journal] = 0

    def drop(self, journal: bytes) -> None:
        """A journal is deleted."""
        self.journals.remove(journal)
        del self.durable[journal]

    def keep(self, journal: bytes, end: int, lives: Mapping[int, int]) -> None:
        """Up to here, a client was told that its drafts are safe. `lives`: whose acks that rests on, by
        machine. What an earlier life has acked may be lost by now.
        """
        for machine, incarnation in lives.items():
            if self._is_present(machine, incarnation):
                kept = self.kept[machine]
                kept[journal] = max(kept.get(journal, 0), end)

    def make_durable(self, journal: bytes, end: int) -> None:
        """Up to here, a client was told that it is durable, or shown what it says."""
        if journal in self.durable:
            self.durable[journal] = max(self.durable[journal], end)

    def lose(self, machine: int) -> None:
        """A machine has lost power: it has what is durable."""
        self.kept[machine] = {}

    def of(self, machine: int) -> Iterator[tuple[bytes, int]]:
        """Up to where a machine must have each journal."""
        for journal, end in self.durable.items():
            yield journal, max(end, self.kept[machine].get(journal, 0))
