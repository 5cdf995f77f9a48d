"""Sessions at an etcd of three members that are killed and stopped, one after the other."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from faircopy.arbiter.etcd_backend import EtcdBackend
from faircopy.arbiter.session import Session
from tests.arbiter.backend_contract import uptime_ms
from tests.arbiter.etcd import EtcdCluster
from tests.arbiter.worker import LISTS, is_added
from tests.seeds import seed_for

LEASE_SECONDS = 40.0
RENEWALS = 2  # of each session, while members fail
SECONDS = 200.0  # for what takes some
SESSIONS = 3
FAULTS = 6
STOPPED_SECONDS = 4.0  # longer than a watch may hang

pytestmark = [pytest.mark.usefixtures("can_run_etcd"), pytest.mark.timeout(1200)]


def test_nothing_is_lost_or_written_twice_when_members_fail(tmp_path: Path) -> None:
    chance = random.Random(seed_for("etcd failures"))
    with EtcdCluster(tmp_path, 3).running() as etcd:
        asyncio.run(try_it(etcd, chance))


def test_a_session_leaves_a_member_that_is_stopped(tmp_path: Path) -> None:
    async def main() -> None:
        sessions = [session_at(etcd, number) for number in (0, 1)]
        for session in sessions:
            await session.open()
        etcd.members[0].pause()
        revision = await sessions[1].transact({}, {"a": b"1"})
        async with asyncio.timeout(SECONDS):
            await until(lambda: sessions[0].revision >= revision)
            await sessions[0].transact({"a": revision}, {"a": b"2"})
        etcd.members[0].go_on()
        for session in sessions:
            await session.close()

    with EtcdCluster(tmp_path, 3).running() as etcd:
        asyncio.run(main())


class CountingBackend(EtcdBackend):
    """It counts how often it has renewed a lease."""

    renewals = 0

    async def keep_alive(self, lease: int) -> bool:
        is_kept = await super().keep_alive(lease)
        self.renewals += is_kept
        return is_kept


def backend_at(etcd: EtcdCluster, number: int) -> CountingBackend:
    """A client that asks this member first."""
    return CountingBackend(etcd.addresses[number:] + etcd.addresses[:number], "test/")


def session_at(etcd: EtcdCluster, number: int) -> Session:
    """A session of such a client."""
    return Session(backend_at(etcd, number), f"{number}", LEASE_SECONDS, uptime_ms)


async def until(check: Callable[[], bool]) -> None:
    """Wait until this is so."""
    while not check():
        await asyncio.sleep(0.1)


async def try_it(etcd: EtcdCluster, chance: random.Random) -> None:
    sessions, acknowledged, lost = list[Session](), list[str](), list[str]()
    backends = [backend_at(etcd, number) for number in range(SESSIONS)]
    for number, backend in enumerate(backends):
        session = Session(backend, f"{number}", LEASE_SECONDS, uptime_ms)
        await session.open()
        session.on_lost = lambda number=number: lost.append(f"{number}")  # type: ignore[misc]
        sessions.append(session)
    is_over = asyncio.Event()

    async def work(session: Session, name: str) -> None:
        for number in itertools.count():
            key, mark = LISTS[number % 2], f"{name}.{number}"
            while not await is_added(session, key, mark):
                pass
            acknowledged.append(mark)
            if is_over.is_set():
                return
            await asyncio.sleep(0.05)

    working = [asyncio.ensure_future(work(each, f"{number}")) for number, each in enumerate(sessions)]
    for number in range(FAULTS):
        await fail(etcd, chance, is_killed=number % 2 == 0)
        enough = len(acknowledged) + 3 * SESSIONS
        async with asyncio.timeout(SECONDS):
            await until(lambda enough=enough: len(acknowledged) >= enough)  # type: ignore[misc]
    async with asyncio.timeout(SECONDS):
        await until(lambda: all(backend.renewals >= RENEWALS for backend in backends))
    is_over.set()
    async with asyncio.timeout(SECONDS):
        await asyncio.gather(*working)
        for session in sessions:
            await session.fence()
    assert lost == []
    copies = [{key: value.value for key, value in session.scan("lists/").items()} for session in sessions]
    assert copies == [copies[0]] * SESSIONS
    there = [mark for key in LISTS for mark in json.loads(copies[0][key])]
    assert Counter(there) == Counter(acknowledged)
    for session in sessions:
        await session.close()


async def fail(etcd: EtcdCluster, chance: random.Random, *, is_killed: bool) -> None:
    """Let a member fail, and come back."""
    member = chance.choice(etcd.members)
    if is_killed:
        member.kill()
        await asyncio.sleep(chance.uniform(0.5, 3))
        member.start()
    else:
        member.pause()
        await asyncio.sleep(STOPPED_SECONDS)
        member.go_on()
