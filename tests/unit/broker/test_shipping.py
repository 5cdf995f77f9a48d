"""What a leader makes of its followers: the barrier before its journals are folded, and why it refuses what
is new.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pytest

from faircopy.broker.shipping import GRACE_SECONDS, ShipsToFollowers
from faircopy.journal.errors import NotEnoughReplicas
from faircopy.journal.journal import Journal
from faircopy.journal.options import Durability, JournalOptions
from faircopy.replication.followers import Followers, Missing
from faircopy.storage.disk_pool import DiskPool
from tests.arbiter.test_session import in_virtual_time
from tests.unit.journal.journal_bench import Bench, flip, only_segment, run


class Noted:
    """Stands in for followers, and notes what it is told."""

    def __init__(self) -> None:
        self.led: list[Journal] = []
        self.barriers: list[Sequence[Journal]] = []
        self.missing: dict[int, Missing] = {}
        self.are_short = False

    def lead(self, journal: Journal) -> None:
        self.led.append(journal)

    def note_moved(self, identity: bytes) -> None:
        """Nobody needs to know."""

    async def barrier(self, journals: Sequence[Journal]) -> None:
        self.barriers.append(journals)


def shipping(noted: Noted, disk: DiskPool) -> ShipsToFollowers:
    store = mock.Mock()
    store.get.return_value = None
    return ShipsToFollowers(cast(Followers, noted), store, disk)


def test_journals_are_opened_raw_and_led_before_the_barrier(tmp_path: Path) -> None:
    """A damaged one is left to whoever folds it."""

    async def test(bench: Bench) -> None:
        noted, journal = Noted(), bench.journal()
        await shipping(noted, bench.disk).share([journal])
        assert noted.led == [journal] and noted.barriers == [[journal]]
        journal.append(cast(Any, 1), b"x", fold=lambda entry: entry)
        await journal.durable()
        flip(only_segment(tmp_path), 10)
        damaged = bench.journal()
        await shipping(noted, bench.disk).share([damaged])
        assert noted.led == [journal] and noted.barriers[1] == []

    run(tmp_path, test)


def test_who_is_away_for_a_moment_refuses_nothing_and_then_everything() -> None:
    async def main() -> None:
        loop, noted = asyncio.get_running_loop(), Noted()
        ships = shipping(noted, mock.Mock())
        assert ships.shortage() is None
        ships.ensure_whole()
        noted.missing[3] = Missing(loop.time(), "nobody listens")
        assert ships.shortage() is None
        with pytest.raises(NotEnoughReplicas):
            ships.ensure_whole()
        await asyncio.sleep(GRACE_SECONDS)
        told = "the replica set lacks broker 3 for 2 s (nobody listens): start it, or see what its log says"
        assert isinstance(ships.shortage(), NotEnoughReplicas) and str(ships.shortage()) == told
        noted.missing.clear()
        noted.are_short = True
        assert "nearly full" in str(ships.shortage())
        ships.ensure_whole()

    in_virtual_time(main)


def test_nothing_of_a_journal_is_durable_here_before_its_followers_have_it() -> None:
    """Not even what is found at a start, before it is led."""

    async def main() -> None:
        options = JournalOptions(Durability.FSYNC, 1 << 20, lambda: 7, lambda error: None)
        noted = Noted()
        applied = shipping(noted, mock.Mock()).applied_to(options)
        assert applied.is_replicated and applied.on_moved == noted.note_moved
        assert applied._replace(is_replicated=False, on_moved=None) == options

    in_virtual_time(main)
