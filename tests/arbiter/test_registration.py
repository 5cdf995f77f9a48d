"""Brokers that join, fail and come back, and a controller that elects leaders."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from faircopy.arbiter.backend import Attempt
from faircopy.arbiter.controller import Controller
from faircopy.arbiter.registration import (
    OTHER_LIFE_SECONDS,
    SHARDS,
    Lives,
    Registration,
    RegistrationRefused,
    lives_in,
    newest_in,
)
from faircopy.arbiter.session import LeaseLost, Session
from faircopy.arbiter.shard_record import IllegalChange, ShardRecord, decode, encode
from faircopy.storage.versioned_map import Conflict, Versioned
from tests.arbiter.memory_backend import MemoryBackend, MemoryServer, Troubles
from tests.arbiter.test_session import in_virtual_time
from tests.seeds import seeds_for

BROKERS, SHARD_COUNT = (1, 2, 3), 4
LEASE_SECONDS = 3.0
NOBODY_YET = 0
NEW = Lives(0, (), is_clean=True)


@dataclass
class Broker:
    """A broker without journals: it joins, is controller at times, and adds replicas to what it leads."""

    number: int
    server: MemoryServer
    chance: random.Random
    directory: Lives = field(default_factory=lambda: NEW)
    lives: int = 0
    incarnation: int | None = None
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    lease: int = 0

    def start(self, troubles: Troubles) -> None:
        """Begin to live."""
        self.lives += 1
        self.tasks = [asyncio.ensure_future(self._live(troubles))]

    def is_registered(self) -> bool:
        """Whether this very life is."""
        found = self.server.entries.get(f"brokers/{self.number}")
        return found is not None and json.loads(found.value)["incarnation"] == self.incarnation

    async def _live(self, troubles: Troubles) -> None:
        backend = MemoryBackend(self.server, self.chance, Troubles())
        loop = asyncio.get_running_loop()
        session = Session(backend, f"{self.number}.{self.lives}", LEASE_SECONDS, lambda: loop.time() * 1000)
        await session.open()
        self.lease = backend.leases[0]
        backend.troubles = troubles
        with contextlib.suppress(LeaseLost):
            await session.fence()
            registration = Registration(session, self.number, self.directory, self._note, self._token)
            self.incarnation = await registration.register("client", "link", "rack")
            self.tasks.append(asyncio.ensure_future(Controller(session, self.number).run()))
            await self._lead(session)

    def _token(self) -> str:
        return f"{self.chance.getrandbits(64):x}"

    async def _note(self, lives: Lives) -> None:
        await asyncio.sleep(self.chance.random() / 10)
        self.directory = lives

    async def _lead(self, session: Session) -> None:
        """Add whoever lives and is not in sync, as if it had caught up."""
        while True:
            await asyncio.sleep(self.chance.random())
            for key, found in session.scan(SHARDS).items():
                record = decode(found.value)
                if (record.leader, record.leader_incarnation) != (self.number, self.incarnation):
                    continue
                for other, incarnation in lives_in(session.scan("brokers/")).items():
                    if record.in_sync.get(other) != incarnation and other in record.replicas:
                        await self._add(session, key, found, other, incarnation)
                        break

    async def _add(self, session: Session, key: str, found: Versioned, other: int, incarnation: int) -> None:
        life = session.get(f"incarnations/{other}")
        assert life is not None
        if newest_in(life).number != incarnation:
            return
        with contextlib.suppress(Conflict, IllegalChange):
            expected = {key: found.version, f"incarnations/{other}": life.version}
            changed = decode(found.value).add(other, incarnation)
            await session.transact(expected, {key: encode(changed)})

    async def kill(self, *, is_clean: bool) -> None:
        """The process ends; its lease does so later."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.incarnation = None
        self.directory = self.directory._replace(is_clean=self.directory.is_clean and is_clean)
        lease = self.lease
        asyncio.get_running_loop().call_later(
            self.chance.random() * LEASE_SECONDS, lambda: self.server.expire(lease)
        )


def make_records(server: MemoryServer) -> None:
    for number in range(SHARD_COUNT):
        nobody = dict.fromkeys(BROKERS, NOBODY_YET)
        record = ShardRecord(BROKERS, BROKERS[0], NOBODY_YET, 1, nobody)
        server.write(Attempt({}, {f"{SHARDS}{number}": encode(record)}))


@pytest.mark.parametrize("seed", seeds_for("registrations", 40))
def test_every_shard_is_led_by_one_that_is_in_sync(seed: int) -> None:
    chance = random.Random(seed)

    async def main() -> None:
        server = MemoryServer()
        make_records(server)
        troubles = Troubles(*(chance.choice((0.0, 0.1)) for _ in range(4)))
        brokers = [Broker(number, server, chance) for number in BROKERS]
        for broker in brokers:
            broker.start(troubles)
        for _ in range(8):
            await asyncio.sleep(chance.random() * 4)
            victim = chance.choice(brokers)
            is_clean = chance.random() < 0.6
            if not is_clean:  # one at a time, so that there is always somebody who has all
                await until(lambda: all_in_sync(server) and all(each.is_registered() for each in brokers))
            await victim.kill(is_clean=is_clean)
            await asyncio.sleep(chance.random() * 4)
            victim.start(troubles)
        troubles.unanswered = troubles.unavailable = troubles.slow = troubles.forgets = 0.0
        await until(lambda: all_in_sync(server))
        check_history(server)
        for broker in brokers:
            await broker.kill(is_clean=True)

    in_virtual_time(main)


async def until(check: Callable[[], bool]) -> None:
    while not check():
        await asyncio.sleep(0.1)


def records_of(server: MemoryServer) -> list[ShardRecord]:
    return [decode(value.value) for key, value in server.entries.items() if key.startswith(SHARDS)]


def all_in_sync(server: MemoryServer) -> bool:
    lives = lives_in({key: value for key, value in server.entries.items() if key.startswith("brokers/")})
    records = records_of(server)
    return len(lives) == len(BROKERS) and all(
        each.is_led(lives) and dict(each.in_sync) == lives for each in records
    )


def check_history(server: MemoryServer) -> None:
    """Each epoch has one leader, who was in sync; no broker is registered while an earlier life of it is in a
    set.
    """
    now: dict[str, ShardRecord] = {}
    leaders = set[tuple[str, int]]()
    for event in server.history:
        if event.key.startswith(SHARDS) and event.value is not None:
            record, before = decode(event.value), now.get(event.key)
            if before is not None and record.epoch > before.epoch:
                assert before.in_sync[record.leader] == record.leader_incarnation
                assert (event.key, record.epoch) not in leaders
                leaders.add((event.key, record.epoch))
            now[event.key] = record
        if event.key.startswith("brokers/") and event.value is not None:
            broker = int(event.key.removeprefix("brokers/"))
            incarnation = json.loads(event.value)["incarnation"]
            assert {each.in_sync[broker] for each in now.values() if broker in each.in_sync} <= {incarnation}
    assert len(leaders) >= SHARD_COUNT


def one_broker(
    directory: Lives, server: MemoryServer, meanwhile: Callable[[Lives], object] = lambda lives: None
) -> list[Lives]:
    """Let broker 1 join with this directory, and say all that was noted there. `meanwhile` is called whenever
    it has noted something.
    """
    noted = [directory]

    async def note(lives: Lives) -> None:
        noted.append(lives)
        meanwhile(lives)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        backend = MemoryBackend(server, random.Random(1), Troubles())
        name = f"{server.revision}"
        session = Session(backend, name, LEASE_SECONDS, lambda: loop.time() * 1000)
        await session.open()
        tokens = (f"{name}.{number}" for number in itertools.count())
        await Registration(session, 1, directory, note, lambda: next(tokens)).register(
            "client", "link", "rack"
        )
        await session.close()

    in_virtual_time(main)
    return noted


def in_sync(server: MemoryServer) -> list[int | None]:
    """As what broker 1 is in sync, in each shard."""
    return [each.in_sync.get(1) for each in records_of(server)]


@pytest.fixture
def server() -> MemoryServer:
    made = MemoryServer()
    make_records(made)
    return made


def test_a_directory_of_an_earlier_life_has_lost_something(server: MemoryServer) -> None:
    first = one_broker(NEW, server)[-1]
    second = one_broker(first, server)[-1]
    assert (second.last, len(second.tokens), second.is_clean) == (2, 1, True)
    assert in_sync(server) == [2] * SHARD_COUNT
    one_broker(first, server)  # restored from a backup
    assert in_sync(server) == [None] * SHARD_COUNT
    assert [each.left for each in records_of(server)] == [{1: 1}] * SHARD_COUNT, "since epoch 1"


def test_a_start_that_was_cut_short_loses_nothing(server: MemoryServer) -> None:
    first = one_broker(NEW, server)[-1]
    asked = one_broker(first, server)[1]  # the store has given it, and nothing was noted after that
    assert (asked.last, len(asked.tokens)) == (1, 2)
    one_broker(asked, server)
    assert in_sync(server) == [3] * SHARD_COUNT


def test_a_life_that_was_given_to_another_process_is_not_ones_own(server: MemoryServer) -> None:
    first = one_broker(NEW, server)[-1]
    one_broker(first, server)
    one_broker(first._replace(tokens=(*first.tokens, "asked for, and refused")), server)
    assert in_sync(server) == [None] * SHARD_COUNT


def test_a_late_write_of_a_life_that_is_over_is_not_taken_for_another_process(server: MemoryServer) -> None:
    def land(lives: Lives) -> None:
        if "incarnations/1" not in server.entries:
            life = {"number": 1, "token": lives.tokens[-1]}
            server.write(Attempt({}, {"incarnations/1": json.dumps(life).encode()}))

    assert one_broker(NEW, server, land)[-1].last == 2
    assert in_sync(server) == [2] * SHARD_COUNT


class Contested(MemoryServer):
    """A store in which another process takes an id as soon as life 2 has written this key."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self._key = key

    def write(self, attempt: Attempt) -> int | None:
        revision = super().write(attempt)
        newest = newest_in(self.entries.get("incarnations/1"))
        if revision is not None and self._key in attempt.changes and newest.number == 2:
            life = json.dumps({"number": 3, "token": "another"}).encode()
            super().write(Attempt({}, {"incarnations/1": life}))
        return revision


@pytest.mark.parametrize("key", ["incarnations/1", f"{SHARDS}{SHARD_COUNT - 1}"])
def test_a_life_that_is_not_the_newest_any_more_says_nothing(key: str) -> None:
    server = Contested(key)
    make_records(server)
    first = one_broker(NEW, server)[-1]
    before = server.revision
    assert one_broker(first, server)[-1].last == 4
    assert in_sync(server) == [None] * SHARD_COUNT
    written = [(each.key, each.value) for each in server.history if each.revision > before and each.value]
    assert [json.loads(value)["incarnation"] for name, value in written if name == "brokers/1"] == [4]
    if key == "incarnations/1":
        records = [decode(value) for name, value in written if name.startswith(SHARDS)]
        assert not any(record.in_sync.get(1) == 2 for record in records)


def test_a_store_that_is_older_than_the_directory_is_refused(server: MemoryServer) -> None:
    before = dict(server.entries)
    with pytest.raises(RegistrationRefused, match="has lived 5 times by its data directory, and 0 times"):
        one_broker(Lives(5, ("a",), is_clean=True), server)
    assert {key: value for key, value in server.entries.items() if key in before} == before


def test_a_broker_waits_for_its_former_life_and_not_for_ever() -> None:
    async def main() -> None:
        server = MemoryServer()
        chance = random.Random(1)
        brokers = [Broker(1, server, chance), Broker(1, server, chance)]
        brokers[0].start(Troubles())
        await until(lambda: "brokers/1" in server.entries)
        brokers[1].lives = 10
        brokers[1].directory = brokers[0].directory
        brokers[1].start(Troubles())
        await asyncio.sleep(OTHER_LIFE_SECONDS / 2)
        assert brokers[1].incarnation is None
        await asyncio.sleep(OTHER_LIFE_SECONDS)
        with pytest.raises(RegistrationRefused, match="another process is broker 1"):
            await brokers[1].tasks[0]
        brokers[1].start(Troubles())
        await asyncio.sleep(1)
        await brokers[0].kill(is_clean=True)
        await until(lambda: brokers[1].incarnation == 2)
        await brokers[1].kill(is_clean=True)

    in_virtual_time(main)
