"""Whom a controller elects, and when it elects nobody."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from faircopy.arbiter.backend import Attempt
from faircopy.arbiter.controller import CONTROLLER, Controller
from faircopy.arbiter.record import NOBODY, SetRecord
from faircopy.arbiter.registration import BROKERS, RECORD, Registered
from faircopy.arbiter.session import LeaseLost, Session
from tests.arbiter.memory_backend import MemoryServer
from tests.arbiter.test_session import in_virtual_time
from tests.unit.arbiter.member import LEASE_SECONDS, Way, record_of, write_record

SOLE = SetRecord("the set's id", (1,), 1, NOBODY, 12, {1: 5}, frozenset({1}))
THREE = SetRecord("the set's id", (1, 2, 3), 1, 4, 12, {1: 4, 2: 5, 3: 6}, frozenset({1, 2}))
NOW_MS = 1_790_000_000_000
LONG_SECONDS = 60.0


def register(server: MemoryServer, broker: int, incarnation: int, known_epoch: int = 0) -> None:
    """A broker lives."""
    registered = Registered(incarnation, "here:9092", "machine", known_epoch)
    value = json.dumps(registered._asdict()).encode()
    server.write(Attempt({}, {f"{BROKERS}{broker}": value}))


async def session_of(server: MemoryServer, name: str) -> tuple[Session, Way]:
    loop, way = asyncio.get_running_loop(), Way(server)
    session = Session(way, name, LEASE_SECONDS, lambda: loop.time() * 1000)
    await session.open()
    return session, way


def controlled(server: MemoryServer, seconds: float = LONG_SECONDS) -> None:
    """Let broker 1 be controller for so long."""

    async def main() -> None:
        session, _ = await session_of(server, f"1.{server.revision}")
        running = asyncio.ensure_future(Controller(session, 1, lambda: NOW_MS).run())
        await asyncio.sleep(seconds)
        assert not running.done()
        await ended(running)
        await session.close()

    in_virtual_time(main)


async def ended(running: asyncio.Future[None]) -> None:
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def server_with(record: SetRecord) -> MemoryServer:
    server = MemoryServer()
    write_record(server, record)
    return server


def said(caplog: pytest.LogCaptureFixture, text: str) -> int:
    return sum(text in each.getMessage() for each in caplog.records)


def test_a_replica_that_lives_is_elected() -> None:
    server = server_with(SOLE)
    register(server, 1, 5)
    controlled(server)
    found = record_of(server)
    assert (found.epoch, found.leader, found.leader_incarnation) == (13, 1, 5)
    assert (found.since_ms, found.unclean_epoch) == (NOW_MS, 0)
    controlled(server)
    assert record_of(server) == found, "it leads"


def test_another_life_is_another_epoch() -> None:
    server = server_with(SOLE.elect(1))
    register(server, 1, 6)
    write_record(server, record_of(server).stay_in(1, 6))
    controlled(server)
    assert (record_of(server).epoch, record_of(server).leader_incarnation) == (14, 6)


def test_who_has_all_drafts_is_elected() -> None:
    server = server_with(THREE)
    register(server, 2, 5)
    register(server, 3, 6)
    controlled(server)
    assert (record_of(server).epoch, record_of(server).leader) == (13, 2)


def test_nobody_is_elected_while_a_broker_knows_a_newer_epoch(caplog: pytest.LogCaptureFixture) -> None:
    """Not even one that knows less: the record is an old one."""
    server = server_with(THREE)
    register(server, 2, 5, known_epoch=12)
    register(server, 3, 6, known_epoch=13)
    controlled(server)
    assert record_of(server) == THREE
    assert said(caplog, "the arbiter's record has epoch 12, and broker 3 has heard of epoch 13") == 1


def test_a_sole_replica_that_has_lost_something_is_recovered() -> None:
    """By an election that says so: nobody could have lost less."""
    server = server_with(SOLE.take_out(1))
    register(server, 1, 6)
    controlled(server)
    found = record_of(server)
    assert (found.epoch, found.unclean_epoch, found.leader_incarnation) == (13, 13, 6)
    assert (found.in_sync, found.drafts, found.left) == ({1: 6}, frozenset(), {})


def test_one_of_several_that_have_lost_something_is_not() -> None:
    lost = THREE.take_out(1).take_out(2).take_out(3)
    server = server_with(lost)
    for broker in (1, 2, 3):
        register(server, broker, 10)
    controlled(server)
    assert record_of(server) == lost


def test_a_sole_replica_that_is_away_is_waited_for() -> None:
    server = server_with(SOLE.take_out(1))
    controlled(server)
    assert record_of(server) == SOLE.take_out(1)


@pytest.mark.parametrize("key", [RECORD, f"{BROKERS}1"])
def test_what_cannot_be_read_elects_nobody(key: str, caplog: pytest.LogCaptureFixture) -> None:
    server = server_with(SOLE)
    register(server, 1, 5)
    server.write(Attempt({}, {key: b'{"epoch": 3}'}))
    before = dict(server.entries)
    controlled(server)
    assert {name: server.entries[name] for name in before} == before
    assert said(caplog, f"nobody is elected: the arbiter's {key} of the replica set can't be read") == 1


def test_no_record_is_waited_for() -> None:
    async def main() -> None:
        server = MemoryServer()
        session, _ = await session_of(server, "1.1")
        running = asyncio.ensure_future(Controller(session, 1).run())
        register(server, 1, 5)
        await asyncio.sleep(LONG_SECONDS)
        write_record(server, SOLE)
        await asyncio.sleep(LONG_SECONDS)
        assert record_of(server).epoch == 13
        await ended(running)
        await session.close()

    in_virtual_time(main)


def test_there_is_one_controller_and_another_one_after_it() -> None:
    async def main() -> None:
        server = server_with(SOLE)
        first, way = await session_of(server, "1.1")
        second, _ = await session_of(server, "2.1")
        running = [asyncio.ensure_future(Controller(each, number).run())
                   for number, each in enumerate((first, second), 1)]  # fmt: skip
        await asyncio.sleep(LONG_SECONDS)
        assert server.entries[CONTROLLER].value == b"1"
        server.expire(way.leases[-1])
        with pytest.raises(LeaseLost):
            await within(LONG_SECONDS, running[0])
        register(server, 1, 5)
        await asyncio.sleep(LONG_SECONDS)
        assert (server.entries[CONTROLLER].value, record_of(server).epoch) == (b"2", 13)
        await ended(running[1])
        for each in (first, second):
            await each.close()

    in_virtual_time(main)


async def within(seconds: float, work: Coroutine[Any, Any, None] | asyncio.Future[None]) -> None:
    async with asyncio.timeout(seconds):
        await work


def test_a_record_that_changes_meanwhile_is_read_again() -> None:
    async def main() -> None:
        server = server_with(SOLE)
        session, way = await session_of(server, "1.1")

        def change(attempt: Attempt) -> None:
            if RECORD in attempt.changes and not record_of(server).since_ms:
                write_record(server, replace(SOLE, epoch=20, since_ms=1))

        way.before_attempt = change
        register(server, 1, 5)
        running = asyncio.ensure_future(Controller(session, 1, lambda: NOW_MS).run())
        await asyncio.sleep(LONG_SECONDS)
        assert record_of(server).epoch == 21
        await ended(running)
        await session.close()

    in_virtual_time(main)
