"""A broker of a set whose other replicas have what they are said to have: everything at first, until they are
held up in some kind of journal.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple
from unittest import mock

from faircopy.broker.broker import Broker
from faircopy.journal.identity import CATALOGUE_TOPIC_ID, METADATA_TOPIC_ID, OFFSETS_TOPIC_ID
from faircopy.journal.journal import Journal
from faircopy.journal.options import JournalOptions
from faircopy.journal.watermarks import EVERYWHERE
from tests.simulation import machine


class Place(Enum):
    """A kind of journal. A broker of these tests has one of each, but for those of topics."""

    CATALOGUE = CATALOGUE_TOPIC_ID
    HOME = METADATA_TOPIC_ID
    OFFSETS = OFFSETS_TOPIC_ID
    DATA = b""


class Bound(Enum):
    """What an entry waits for: the replicas that have all drafts, or all that have to have it."""

    KEPT = "kept"
    DURABLE = "durable"


class Hold(NamedTuple):
    """From now on, no replica gets anything in one kind of journal, as far as one bound is concerned."""

    place: Place
    bound: Bound

    def __str__(self) -> str:
        return f"{self.bound.value} in {self.place.name.lower()}"


def place_of(identity: bytes) -> Place:
    """The kind of the journal with this identity."""
    return next(place for place in Place if identity.startswith(place.value))


EVERY_HOLD = frozenset(Hold(place, bound) for place in Place for bound in Bound)


class Replicas:
    """The other replicas, for all journals of a broker, also those that come later."""

    def __init__(self) -> None:
        self._journals: list[tuple[Place, Journal]] = []
        self._holds: frozenset[Hold] = frozenset()

    def follow(self, journal: Journal, identity: bytes) -> None:
        """Replicate one more journal, which is empty or yet to be opened."""
        place = place_of(identity)
        self._journals.append((place, journal))
        self._tell(place, journal)

    def hold(self, *holds: Hold) -> None:
        """Get nothing more where this says so, and everything elsewhere."""
        self._holds = frozenset(holds)
        for each in self._journals:
            self._tell(*each)

    @property
    def appended(self) -> list[int]:
        """The end of each journal."""
        return [journal.watermarks.appended for _, journal in self._journals]

    def _tell(self, place: Place, journal: Journal) -> None:
        durable, kept = (
            0 if Hold(place, bound) in self._holds else EVERYWHERE for bound in (Bound.DURABLE, Bound.KEPT)
        )
        journal.note_replicated(durable, kept)


class ReplicatedBroker(Broker):
    """A broker whose journals wait for other replicas."""

    def _journal_options(self, *, lost_power: bool) -> JournalOptions:
        return super()._journal_options(lost_power=lost_power)._replace(is_replicated=True)


@contextlib.contextmanager
def replicated() -> Iterator[Replicas]:
    """Simulated machines have such brokers, and these are their other replicas."""
    replicas, real = Replicas(), Journal.__init__

    def init(self: Journal, directory: Any, identity: bytes, *arguments: Any, **options: Any) -> None:
        real(self, directory, identity, *arguments, **options)
        replicas.follow(self, identity)

    with mock.patch.object(Journal, "__init__", init), mock.patch.object(machine, "Broker", ReplicatedBroker):
        yield replicas
