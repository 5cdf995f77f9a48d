"""A member of a set that waits for its turn, and for the lock of the directory."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from pathlib import Path

import pytest

from faircopy.arbiter.joining import Applicant
from faircopy.arbiter.membership import Membership
from faircopy.broker.leadership import LeadsAlone, locked_directory
from faircopy.settings.table import Settings
from faircopy.storage.data_directory import DataDirectory
from tests.arbiter.memory_backend import MemoryBackend, MemoryServer, Troubles
from tests.arbiter.test_session import LEASE_SECONDS, in_virtual_time

LOCKED_SECONDS = 60.0  # of the virtual clock


class LoopClock:
    """The virtual clock, as a machine's."""

    def wall_ms(self) -> int:
        return self.uptime_ms()

    def monotonic_ms(self) -> float:
        return asyncio.get_running_loop().time() * 1000

    def uptime_ms(self) -> int:
        return int(self.monotonic_ms())


def member(backend: MemoryBackend) -> Membership:
    tokens = (f"token {number}" for number in itertools.count())
    who = Applicant("orders", 1, "d", True)
    return Membership(backend, who, LEASE_SECONDS, LoopClock(), lambda: next(tokens))


class Waits(LeadsAlone):
    """It is of a set, and counts how often it was its turn."""

    is_of_a_set = True
    turns = 0

    async def until_turn(self) -> None:
        self.turns += 1


def test_a_process_whose_turn_comes_again_keeps_its_session() -> None:
    async def main() -> None:
        backend = MemoryBackend(MemoryServer(), random.Random(1), Troubles())
        membership = member(backend)
        for _ in range(3):
            await membership.until_turn()
        assert len(backend.leases) == 1
        await membership.close()

    in_virtual_time(main)


def test_a_start_says_why_the_arbiter_does_not_answer(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        backend = MemoryBackend(MemoryServer(), random.Random(1), Troubles(unavailable=1.0))
        membership = member(backend)
        starting = asyncio.ensure_future(membership.until_turn())
        await asyncio.sleep(10 * LEASE_SECONDS)
        backend.troubles = Troubles()
        await starting
        await membership.close()

    in_virtual_time(main)
    assert [record.getMessage() for record in caplog.records] == [
        "the arbiter does not answer (nobody answers): this start waits for it"
    ]


def test_a_standby_says_once_that_the_arbiter_is_away_and_once_that_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        backend = MemoryBackend(MemoryServer(), random.Random(1), Troubles())
        membership = member(backend)
        await membership.until_turn()
        for troubles in (Troubles(unavailable=1.0), Troubles()):
            backend.troubles = troubles
            await asyncio.sleep(10 * LEASE_SECONDS)
        await membership.close()

    in_virtual_time(main)
    assert [record.getMessage() for record in caplog.records] == [
        "the arbiter does not answer: this process, which waits for its turn, waits for it",
        "the arbiter answers again: this process waits for its turn",
    ]


def test_a_member_waits_for_the_lock_without_blocking_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def blocks(seconds: float) -> None:
        raise AssertionError("its lease could not be renewed meanwhile")

    async def main() -> None:
        held = DataDirectory(tmp_path, process_id=7)
        monkeypatch.setattr(time, "sleep", blocks)
        leadership = Waits(str(tmp_path))
        settings = Settings(data_dir=str(tmp_path), replica_set="orders")
        locking = asyncio.ensure_future(locked_directory(settings, leadership, 8))
        await asyncio.sleep(LOCKED_SECONDS)
        assert leadership.turns > 1
        held.close()
        (await locking).close()

    in_virtual_time(main)
    assert [record.getMessage() for record in caplog.records] == [
        f"nobody leads replica set orders, but process 7 still has the lock of {tmp_path}: "
        "it may be stopped, or hang. This start waits until it is unlocked"
    ]


def test_what_is_locked_for_a_moment_is_not_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        held = DataDirectory(tmp_path)
        settings = Settings(data_dir=str(tmp_path), replica_set="orders")
        locking = asyncio.ensure_future(locked_directory(settings, Waits(str(tmp_path)), 8))
        await asyncio.sleep(0)
        held.close()
        (await locking).close()

    in_virtual_time(main)
    assert not caplog.records
