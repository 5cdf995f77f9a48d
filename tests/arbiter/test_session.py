"""Sessions with a store that loses answers, lands writes late, and lets leases expire."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from faircopy.arbiter.session import LeaseLost, Session
from faircopy.storage.versioned_map import ABSENT, Conflict, Versioned
from tests.arbiter.memory_backend import MemoryBackend, MemoryServer, Troubles
from tests.seeds import seeds_for
from tests.simulation.loop import VirtualLoop

LEASE_SECONDS = 3.0
COUNTERS = ("counters/a", "counters/b")
WRITES = 12
SECONDS = 1_000.0  # of the virtual clock


@dataclass
class Client:
    """A session, and what became of its writes: their marks, by outcome."""

    session: Session
    backend: MemoryBackend
    done: dict[str, int] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    cut_off: set[str] = field(default_factory=set)


def in_virtual_time(main: Callable[[], Awaitable[None]]) -> None:
    loop = VirtualLoop()

    async def run() -> None:
        async with asyncio.timeout(SECONDS):
            await main()

    try:
        loop.run(run())
    finally:
        loop.close()
    assert not loop.failures


async def client(server: MemoryServer, chance: random.Random, troubles: Troubles, name: str) -> Client:
    backend = MemoryBackend(server, chance, Troubles())
    loop = asyncio.get_running_loop()
    session = Session(backend, name, LEASE_SECONDS, lambda: loop.time() * 1000)
    await session.open()
    backend.troubles = troubles
    return Client(session, backend)


async def increment(who: Client, key: str, mark: str) -> None:
    """Count up a number that has the marks of all who have."""
    found = who.session.get(key)
    marks = json.loads(found.value) if found else []
    version = found.version if found else ABSENT
    try:
        value = json.dumps([*marks, mark]).encode()
        who.done[mark] = await who.session.transact({key: version}, {key: value})
    except Conflict:
        who.refused.add(mark)
        assert who.session.get(key) != found, "who reads again decides anew"
    except LeaseLost:
        who.cut_off.add(mark)


@pytest.mark.parametrize("seed", seeds_for("sessions", 60))
def test_every_write_has_happened_or_not_and_its_session_knows(seed: int) -> None:
    chance = random.Random(seed)
    troubles = Troubles(*(chance.choice((0.0, 0.1, 0.3)) for _ in range(4)))

    async def main() -> None:
        server = MemoryServer()
        clients = [await client(server, chance, troubles, f"{number}") for number in range(3)]

        async def work(who: Client, number: int) -> None:
            for each in range(WRITES):
                await increment(who, chance.choice(COUNTERS), f"{number}.{each}")
                await asyncio.sleep(chance.random())

        await asyncio.gather(*(work(who, number) for number, who in enumerate(clients)))
        for who in clients:
            who.backend.troubles = Troubles()
            await asyncio.sleep(2)  # what is late has landed
            await who.session.fence()
            assert who.session.scan("") == dict(sorted(server.entries.items()))
        there = [mark for key in COUNTERS for mark in json.loads(value_of(server, key))]
        assert sorted(there) == sorted(mark for who in clients for mark in who.done)
        assert not set(there) & {mark for who in clients for mark in who.refused}
        assert not any(who.cut_off for who in clients)
        revisions = {
            mark: revision
            for revision, attempt in server.landed
            for key, value in attempt.changes.items()
            if key in COUNTERS and value is not None
            for mark in json.loads(value)[-1:]
        }
        assert revisions == {mark: revision for who in clients for mark, revision in who.done.items()}
        for who in clients:
            await who.session.close()
            await who.backend.close()

    in_virtual_time(main)


def value_of(server: MemoryServer, key: str) -> bytes:
    return server.entries[key].value if key in server.entries else b"[]"


@pytest.mark.parametrize("seed", seeds_for("expired sessions", 60))
def test_nothing_of_a_session_lands_once_its_lease_is_gone(seed: int) -> None:
    chance = random.Random(seed)

    async def main() -> None:
        server = MemoryServer()
        who = await client(server, chance, Troubles(unanswered=0.5, slow=0.2), "one")
        lost = list[int]()
        who.session.on_lost = lambda: lost.append(1)

        async def work() -> None:
            for each in range(WRITES):
                await increment(who, "counters/a", f"{each}")

        working = asyncio.ensure_future(work())
        await asyncio.sleep(chance.random() * 3)
        server.expire(who.backend.leases[0])
        after = server.revision
        assert "sessions/one" not in server.entries
        await working
        await asyncio.sleep(LEASE_SECONDS)
        assert server.revision == after
        assert who.session.is_in_doubt
        assert lost == [1]
        there = json.loads(value_of(server, "counters/a"))
        assert set(who.done) <= set(there) <= set(who.done) | who.cut_off
        with pytest.raises(LeaseLost):
            await who.session.transact({}, {"x": b""})
        await who.session.close()

    in_virtual_time(main)


def test_a_lease_is_in_doubt_before_it_can_have_expired() -> None:
    async def main() -> None:
        server, troubles = MemoryServer(), Troubles()
        who = await client(server, random.Random(1), troubles, "one")
        await asyncio.sleep(10 * LEASE_SECONDS)
        assert not who.session.is_in_doubt
        troubles.unavailable = 1.0
        last_renewal = asyncio.get_running_loop().time()
        while not who.session.is_in_doubt:
            await asyncio.sleep(0.01)
        assert asyncio.get_running_loop().time() < last_renewal + LEASE_SECONDS
        troubles.unavailable = 0.0
        await asyncio.sleep(LEASE_SECONDS)
        assert not who.session.is_in_doubt
        await who.session.close()

    in_virtual_time(main)


def test_what_is_bound_to_a_session_goes_with_it() -> None:
    async def main() -> None:
        server = MemoryServer()
        one, other = [await client(server, random.Random(1), Troubles(), name) for name in "ab"]
        seen = list[tuple[str, Versioned | None]]()
        other.session.watch("brokers/", lambda key, value: seen.append((key, value)))
        revision = await one.session.transact({}, {"brokers/1": b"here", "topics/t": b""}, ["brokers/1"])
        await other.session.fence()
        await one.session.close()
        await other.session.fence()
        assert seen == [("brokers/1", Versioned(b"here", revision)), ("brokers/1", None)]
        assert list(other.session.scan("")) == ["sessions/b", "topics/t"]
        await other.session.close()

    in_virtual_time(main)


def test_a_caller_that_gives_up_cancels_nothing() -> None:
    async def main() -> None:
        server = MemoryServer()
        who = await client(server, random.Random(1), Troubles(slow=1.0), "one")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(who.session.transact({}, {"x": b"1"}), 0.001)
        await asyncio.sleep(2)
        assert server.entries["x"].value == b"1"
        await who.session.close()

    in_virtual_time(main)


def test_a_store_that_is_away_is_waited_for() -> None:
    async def main() -> None:
        server, troubles = MemoryServer(), Troubles()
        who = await client(server, random.Random(1), troubles, "one")
        troubles.unavailable = 1.0
        writing = asyncio.ensure_future(who.session.transact({}, {"x": b"1"}))
        fencing = asyncio.ensure_future(who.session.fence())
        await asyncio.sleep(1)
        assert not writing.done()
        assert not fencing.done()
        troubles.unavailable = 0.0
        await writing
        await fencing
        assert who.session.get("x") is not None
        await who.session.close()

    in_virtual_time(main)


@pytest.mark.parametrize("seed", seeds_for("first writes", 40))
def test_the_first_write_of_a_session_may_be_unanswered_as_well(seed: int) -> None:
    async def main() -> None:
        server, loop = MemoryServer(), asyncio.get_running_loop()
        backend = MemoryBackend(server, random.Random(seed), Troubles(unanswered=0.7))
        session = Session(backend, "one", LEASE_SECONDS, lambda: loop.time() * 1000)
        assert session.is_in_doubt
        await session.open()
        assert not session.is_in_doubt
        await session.transact({}, {"x": b"1"})
        assert server.entries["x"].value == b"1"
        await session.close()

    in_virtual_time(main)


def test_a_session_that_is_closed_has_not_lost_its_lease() -> None:
    async def main() -> None:
        server, lost = MemoryServer(), list[int]()
        who = await client(server, random.Random(1), Troubles(), "one")
        who.session.on_lost = lambda: lost.append(1)
        await who.session.close()
        assert lost == []
        with pytest.raises(LeaseLost):
            await who.session.transact({}, {})

    in_virtual_time(main)
