"""Every flip in a journal is found, except past its end, and where it can't be told from a torn tail."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from faircopy.catalogue.journal import CATALOGUE_IDENTITY
from faircopy.journal.identity import OFFSETS_TOPIC_ID, TopicIdPartition
from faircopy.storage.state_store import StateStore
from faircopy.transactions.metadata_journal import journal_identity
from faircopy.verify.findings import Finding
from faircopy.verify.journal_entries import open_to_show, shown_entries
from faircopy.verify.partition import PartitionCheck
from faircopy.verify.shared_journals import CatalogueCheck, OffsetsCheck, check_metadata_journal
from tests.rot.flips import Flip, flipped, flips_of
from tests.rot.made import Made, identity

HEADER_BYTES = 64
ENTRY_HEADER_BYTES = 64
ENTRIES_EXHAUSTED = 6
SAMPLES = 1_000
SHARED = {"catalogue": "_catalogue", "transactions": "_metadata", "offsets": "__consumer_offsets"}


def nothing(_bytes: int) -> None:
    """Progress is not looked at."""


class Stands(NamedTuple):
    """Where an entry stands in its file, and whether its damage can be told from a torn tail."""

    begin: int
    end: int
    is_known_durable: bool


class Case(NamedTuple):
    """One journal, how it is checked, and up to which position a checkpoint knows it to be durable."""

    directory: Path
    check: Callable[[], list[Finding]]
    checkpoint: int

    def stands(self) -> dict[Path, list[Stands]]:
        """All entries of each file."""
        shown = list(shown_entries(open_to_show(self.directory)))
        found: dict[Path, list[Stands]] = {path: [] for path in sorted(self.directory.iterdir())}
        for number, each in enumerate(shown):
            position = each.entry.position
            later = any(other.entry.durable > position for other in shown[number + 1 :])
            is_known = position < self.checkpoint or later
            found[each.path].append(Stands(each.byte, each.byte + each.entry.length, is_known))
        return found


def case_of(made: Made, store: StateStore, name: str) -> Case:
    """`orders-0` and so on are partitions' journals; the shared ones are those in use."""
    if name in SHARED:
        return shared_case(made, store, name)
    topic, _, partition = name.partition("-")
    own = identity(store, topic, int(partition))
    journal = made.files("journal", topic, int(partition))[0].parent
    log = made.data / "log" / journal.relative_to(made.data / "journal")
    return Case(
        journal,
        lambda: list(PartitionCheck(own, journal, log, store, nothing).run()),
        checkpoint_of(store, own),
    )


def shared_case(made: Made, store: StateStore, name: str) -> Case:
    used = (
        child for child in sorted((made.data / "journal" / SHARED[name]).iterdir()) if any(child.iterdir())
    )
    directory = next(used)
    number = int(directory.name)
    if name == "catalogue":
        check = CatalogueCheck
        checkpoint = checkpoint_of(store, CATALOGUE_IDENTITY)
        return Case(directory, lambda: list(check(directory, store, nothing).run()), checkpoint)
    if name == "transactions":
        checkpoint = checkpoint_of(store, journal_identity(number))
        return Case(
            directory, lambda: list(check_metadata_journal(number, directory, store, nothing)), checkpoint
        )
    own = TopicIdPartition(OFFSETS_TOPIC_ID, number).identity
    return Case(
        directory, lambda: list(OffsetsCheck(own, directory, store, nothing).run()), checkpoint_of(store, own)
    )


def checkpoint_of(store: StateStore, own: bytes) -> int:
    """The position of a journal's last checkpoint."""
    value = store.get("checkpoints", own)
    return json.loads(value)["position"] if value is not None else 0


@pytest.fixture(params=["stopped", "killed"])
def made(request: pytest.FixtureRequest) -> Made:
    found: Made = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def store(made: Made) -> Iterator[StateStore]:
    opened = StateStore.open_to_read(made.data / "state.lmdb")
    yield opened
    opened.close()


@pytest.mark.parametrize("name", ["orders-0", "audit-0", "bulk-0", "bulk-1", *SHARED])
def test_flips_in_a_journal(made: Made, store: StateStore, name: str, chance: random.Random) -> None:
    case = case_of(made, store, name)
    assert case.check() == []
    for path, stands in case.stands().items():
        end = stands[-1].end if stands else HEADER_BYTES
        exhausted = chance.sample(stands, min(ENTRIES_EXHAUSTED, len(stands)))
        every = [
            *range(HEADER_BYTES),
            *(byte for each in exhausted for byte in range(each.begin, each.begin + ENTRY_HEADER_BYTES)),
        ]
        samples = SAMPLES // (4 if "bulk" in name else 1)
        for flip in flips_of(chance, every, range(HEADER_BYTES, end), samples):
            check_flip(case, path, stands, flip)
        # Behind the end is space that was reserved: the next entries are written over it.
        after = range(end, path.stat().st_size)
        for flip in flips_of(chance, after[:1], after, 10):
            with flipped(path, flip):
                assert case.check() == [], (path, flip)


def check_flip(case: Case, path: Path, stands: list[Stands], flip: Flip) -> None:
    """The finding names the file, and the byte at which the damaged entry begins."""
    with flipped(path, flip):
        findings = case.check()
    entry = next((each for each in stands if each.begin <= flip.byte < each.end), None)
    if entry is None:
        assert any(each.path == path and (each.byte or 0) < HEADER_BYTES for each in findings), (
            path,
            flip,
            findings,
        )
    elif entry.is_known_durable:
        assert any(each.path == path and each.byte == entry.begin for each in findings), (
            path,
            flip,
            findings,
        )
    else:
        # No later entry and no checkpoint tells that this one was durable. A start cuts it as a torn tail and
        # loses nothing that was shown: if something had been, the log would tell.
        assert all(each.path == path and each.byte == entry.begin for each in findings), (
            path,
            flip,
            findings,
        )
