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
from faircopy.arbiter.directory_note import Directory, DirectoryNote
from faircopy.arbiter.joining import Applicant, Incarnation, RegistrationRefused
from faircopy.arbiter.record import Grade, IllegalChange, SetRecord, decode, encode
from faircopy.arbiter.registration import RECORD, Registration, lives_ever, lives_in
from faircopy.arbiter.session import LeaseLost, Session
from faircopy.storage.versioned_map import Conflict, Versioned
from tests.arbiter.memory_backend import MemoryBackend, MemoryServer, Troubles
from tests.arbiter.test_session import in_virtual_time
from tests.seeds import seeds_for

BROKERS = (1, 2, 3)
LEASE_SECONDS = 3.0
NOBODY_YET = 0
SET_ID = "the set's id"


def new(broker: int) -> DirectoryNote:
    """The directory of a replica that has never lived."""
    return DirectoryNote(SET_ID, is_member=True, broker=broker)


def applicant(broker: int, *, makes_set: bool = False) -> Applicant:
    return Applicant("orders", broker, "/data", makes_set)


@dataclass
class Broker:
    """A broker without journals: it joins, is controller at times, and adds replicas to what it leads."""

    number: int
    server: MemoryServer
    chance: random.Random
    directory: DirectoryNote = field(default_factory=DirectoryNote)
    is_clean: bool = True
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
            grade = Grade.DRAFTS if self.is_clean else Grade.UNKNOWN
            note = self.directory if self.directory.set_id else new(self.number)
            directory = Directory(note, is_empty=False, epoch=0, grade=grade)
            registration = Registration(session, applicant(self.number), directory, self._note, self._token)
            self.incarnation = (await registration.register("client", "host")).last
            self.is_clean = True
            self.tasks.append(asyncio.ensure_future(Controller(session, self.number).run()))
            await self._lead(session)

    def _token(self) -> str:
        return f"{self.chance.getrandbits(64):x}"

    async def _note(self, note: DirectoryNote) -> None:
        await asyncio.sleep(self.chance.random() / 10)
        self.directory = note

    async def _lead(self, session: Session) -> None:
        """Add whoever lives and is not in sync, as if it had caught up."""
        while True:
            await asyncio.sleep(self.chance.random())
            found = session.get(RECORD)
            assert found is not None
            record = decode(found.value)
            if (record.leader, record.leader_incarnation) != (self.number, self.incarnation):
                continue
            for other, incarnation in lives_in(session.scan("brokers/")).items():
                if record.in_sync.get(other) != incarnation and other in record.replicas:
                    await self._add(session, found, other, incarnation)
                    break

    async def _add(self, session: Session, found: Versioned, other: int, incarnation: int) -> None:
        life = session.get(f"incarnations/{other}")
        assert life is not None
        if lives_ever({f"incarnations/{other}": life})[other].number != incarnation:
            return
        with contextlib.suppress(Conflict, IllegalChange):
            expected = {RECORD: found.version, f"incarnations/{other}": life.version}
            changed = decode(found.value).add(other, incarnation)
            await session.transact(expected, {RECORD: encode(changed)})

    async def kill(self, *, is_clean: bool) -> None:
        """The process ends; its lease does so later."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.incarnation = None
        self.is_clean = self.is_clean and is_clean
        lease = self.lease
        asyncio.get_running_loop().call_later(
            self.chance.random() * LEASE_SECONDS, lambda: self.server.expire(lease)
        )


def make_record(server: MemoryServer) -> None:
    nobody = dict.fromkeys(BROKERS, NOBODY_YET)
    record = SetRecord(SET_ID, BROKERS, BROKERS[0], NOBODY_YET, 1, nobody, frozenset(BROKERS))
    server.write(Attempt({}, {RECORD: encode(record)}))


@pytest.mark.parametrize("seed", seeds_for("registrations", 40))
def test_the_set_is_led_by_one_that_is_in_sync(seed: int) -> None:
    chance = random.Random(seed)

    async def main() -> None:
        server = MemoryServer()
        make_record(server)
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


def record_of(server: MemoryServer) -> SetRecord:
    return decode(server.entries[RECORD].value)


def all_in_sync(server: MemoryServer) -> bool:
    lives = lives_in({key: value for key, value in server.entries.items() if key.startswith("brokers/")})
    record = record_of(server)
    return len(lives) == len(BROKERS) and record.is_led(lives) and dict(record.in_sync) == lives


def check_history(server: MemoryServer) -> None:
    """Each epoch has one leader, who was in sync; no broker is registered while an earlier life of it is in
    the set.
    """
    record: SetRecord | None = None
    leaders = set[int]()
    for event in server.history:
        if event.key == RECORD and event.value is not None:
            before, record = record, decode(event.value)
            if before is not None and record.epoch > before.epoch:
                assert before.in_sync[record.leader] == record.leader_incarnation
                assert record.epoch not in leaders
                leaders.add(record.epoch)
        if event.key.startswith("brokers/") and event.value is not None:
            broker = int(event.key.removeprefix("brokers/"))
            assert record is not None
            assert record.in_sync.get(broker) in (None, json.loads(event.value)["incarnation"])
    assert leaders


Meanwhile = Callable[[DirectoryNote], object]


def one_broker(
    note: DirectoryNote,
    server: MemoryServer,
    meanwhile: Meanwhile = lambda note: None,
    *,
    grade: Grade = Grade.DRAFTS,
    broker: int = 1,
    makes_set: bool = False,
    is_empty: bool = False,
) -> list[DirectoryNote]:
    """Let a broker join with this directory, and say all that was noted there. `meanwhile` is called whenever
    it has noted something.
    """
    noted = [note]

    async def store_note(note: DirectoryNote) -> None:
        noted.append(note)
        meanwhile(note)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        backend = MemoryBackend(server, random.Random(1), Troubles())
        name = f"{server.revision}"
        session = Session(backend, name, LEASE_SECONDS, lambda: loop.time() * 1000)
        await session.open()
        tokens = (f"{name}.{number}" for number in itertools.count())
        try:
            await Registration(
                session,
                applicant(broker, makes_set=makes_set),
                Directory(note, is_empty, 7, grade),
                store_note,
                lambda: next(tokens),
            ).register("client", "host")
        finally:
            await session.close()

    in_virtual_time(main)
    return noted


@pytest.fixture
def server() -> MemoryServer:
    made = MemoryServer()
    make_record(made)
    return made


def in_sync(server: MemoryServer) -> int | None:
    """As what broker 1 is in sync."""
    return record_of(server).in_sync.get(1)


def test_an_older_copy_of_a_directory_is_refused(server: MemoryServer) -> None:
    first = one_broker(new(1), server)[-1]
    second = one_broker(first, server)[-1]
    assert (second.last, len(second.tokens)) == (2, 1)
    assert in_sync(server) == 2
    with pytest.raises(RegistrationRefused, match="an older copy of a directory of replica set orders: its "
                       "last life was number 1 of broker 1"):  # fmt: skip
        one_broker(first, server)
    assert in_sync(server) == 2, "nothing has changed"


def test_a_start_that_was_cut_short_loses_nothing(server: MemoryServer) -> None:
    first = one_broker(new(1), server)[-1]
    asked = one_broker(first, server)[1]  # the arbiter has given it, and nothing was noted after that
    assert (asked.last, len(asked.tokens)) == (1, 2)
    one_broker(asked, server)
    assert in_sync(server) == 3


def test_what_may_be_lost_is_in_the_record(server: MemoryServer) -> None:
    first = one_broker(new(1), server, grade=Grade.DURABLE)[-1]
    assert in_sync(server) == 1
    assert record_of(server).drafts == {2, 3}
    one_broker(first, server, grade=Grade.UNKNOWN)
    assert (in_sync(server), record_of(server).left) == (None, {1: 1})


def test_a_life_that_was_given_to_another_process_is_not_ones_own(server: MemoryServer) -> None:
    first = one_broker(new(1), server)[-1]
    one_broker(first, server)
    with pytest.raises(RegistrationRefused, match="older copy"):
        one_broker(first._replace(tokens=(*first.tokens, "asked for, and refused")), server)


def test_a_late_write_of_a_life_that_is_over_is_not_taken_for_another_process(server: MemoryServer) -> None:
    def land(note: DirectoryNote) -> None:
        if "incarnations/1" not in server.entries:
            life = {"number": 1, "token": note.tokens[-1]}
            server.write(Attempt({}, {"incarnations/1": json.dumps(life).encode()}))

    assert one_broker(new(1), server, land)[-1].last == 2
    assert in_sync(server) == 2


def test_a_life_that_another_process_has_begun_meanwhile_ends_this_start(server: MemoryServer) -> None:
    first = one_broker(new(1), server)[-1]
    another = json.dumps({"number": 2, "token": "another"}).encode()
    before = record_of(server)
    with pytest.raises(RegistrationRefused, match="older copy"):
        one_broker(first, server, lambda _: server.write(Attempt({}, {"incarnations/1": another})))
    assert record_of(server) == before
    assert "brokers/1" not in server.entries


def test_an_arbiter_that_is_older_than_the_directory_is_refused(server: MemoryServer) -> None:
    before = dict(server.entries)
    lived = new(1)._replace(last=5, tokens=("a",))
    with pytest.raises(RegistrationRefused, match="has lived 5 times by its directory /data, and 0 times"):
        one_broker(lived, server)
    with pytest.raises(RegistrationRefused, match="has epoch 1, and /data has heard of epoch 9"):
        one_broker(new(1)._replace(epoch=9), server)
    assert {key: value for key, value in server.entries.items() if key in before} == before


def test_a_new_set_is_made_once() -> None:
    server = MemoryServer()
    empty = DirectoryNote()
    with pytest.raises(RegistrationRefused, match="start its first broker with --new-set"):
        one_broker(empty, server, is_empty=True)
    assert RECORD not in server.entries
    noted = one_broker(empty, server, is_empty=True, makes_set=True)
    made = record_of(server)
    assert made == SetRecord(noted[-1].set_id, (1,), 1, 0, 7, {1: 1}, frozenset({1}))
    for each in noted[1:-1]:  # wherever the start was cut short
        assert (each.set_id, each.is_member) == (made.set_id, False)
        one_broker(each, MemoryServer(), is_empty=True, makes_set=True)
    cut_short = one_broker(noted[-2], server, is_empty=True, makes_set=True)
    assert cut_short[-1].set_id == record_of(server).set_id == made.set_id
    for flag in (False, True):
        with pytest.raises(RegistrationRefused, match="and /data is empty: is the volume"):
            one_broker(empty, server, is_empty=True, makes_set=flag, broker=2)


def test_a_directory_that_was_in_no_set_is_adopted() -> None:
    server = MemoryServer()
    member = one_broker(DirectoryNote(), server, grade=Grade.DURABLE)[-1]
    made = record_of(server)
    assert (made.epoch, made.in_sync, made.drafts) == (7, {1: 1}, frozenset())
    with pytest.raises(RegistrationRefused, match="/data has data that never belonged to the set"):
        one_broker(DirectoryNote(), server)
    with pytest.raises(RegistrationRefused, match="the arbiter has no record of replica set orders"):
        one_broker(member, MemoryServer(), makes_set=True)
    with pytest.raises(RegistrationRefused, match=f"the id other, and set orders at this arbiter has the id "
                       f"{made.set_id}"):  # fmt: skip
        one_broker(member._replace(set_id="other"), server)


def test_a_record_that_is_lost_is_not_made_by_a_start() -> None:
    server = MemoryServer()
    one_broker(DirectoryNote(), server)
    server.write(Attempt({}, {RECORD: None}))
    with pytest.raises(RegistrationRefused, match="it knows lives of its broker 1: the record is lost"):
        one_broker(DirectoryNote(), server)


def test_a_directory_moves_from_broker_to_broker() -> None:
    server = MemoryServer()
    first = one_broker(DirectoryNote(), server)[-1]
    notes = one_broker(first, server, broker=2)
    moved = notes[-1]
    assert (record_of(server).replicas, record_of(server).in_sync) == ((2,), {2: 1})
    assert (moved.broker, moved.last) == (2, 1)
    for broker in (1, 2):
        with pytest.raises(RegistrationRefused, match="an older copy"):
            one_broker(first, server, broker=broker)
    cut_short = notes[-2]
    assert one_broker(cut_short, server, broker=2)[-1].last == 2, "the move had landed"
    back = one_broker(one_broker(moved._replace(tokens=(*moved.tokens, lives(server)[2].token)), server,
                      broker=2)[-1], server)[-1]  # fmt: skip
    assert (back.broker, back.last, record_of(server).in_sync) == (1, 2, {1: 2})


def lives(server: MemoryServer) -> dict[int, Incarnation]:
    return lives_ever({key: each for key, each in server.entries.items() if key.startswith("incarnations/")})


def test_a_directory_cannot_have_the_broker_of_another_one(server: MemoryServer) -> None:
    first = one_broker(new(1), server)[-1]
    with pytest.raises(RegistrationRefused, match="broker 2 of replica set orders has a directory"):
        one_broker(first, server, broker=2)


def test_a_broker_waits_for_its_former_life() -> None:
    async def main() -> None:
        server = MemoryServer()
        make_record(server)
        chance = random.Random(1)
        brokers = [Broker(1, server, chance), Broker(1, server, chance)]
        brokers[0].start(Troubles())
        await until(lambda: brokers[0].incarnation == 1)
        brokers[1].lives = 10
        brokers[1].directory = brokers[0].directory
        brokers[1].start(Troubles())
        await asyncio.sleep(120)
        assert brokers[1].incarnation is None
        await brokers[0].kill(is_clean=True)
        await until(lambda: brokers[1].incarnation == 2)
        await brokers[1].kill(is_clean=True)

    in_virtual_time(main)
