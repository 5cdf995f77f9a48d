"""A member of a replica set waits for its turn, leads, and ends once it does not lead any more."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from faircopy.arbiter.backend import Attempt
from faircopy.arbiter.membership import Elected
from faircopy.arbiter.record import Grade, SetRecord
from faircopy.arbiter.registration import BROKERS, RECORD, Registered
from faircopy.arbiter.session import LeaseLost
from tests.arbiter.memory_backend import MemoryServer
from tests.arbiter.test_session import in_virtual_time
from tests.simulation.arbiter import DRIFT
from tests.unit.arbiter.member import ADDRESS, LEASE_SECONDS, Member, leader, record_of, write_record

LOOK_SECONDS = 0.01
LONG_SECONDS = 60.0


def said(caplog: pytest.LogCaptureFixture, text: str) -> int:
    """How often this was logged."""
    return sum(text in each.getMessage() for each in caplog.records)


def test_it_waits_while_somebody_leads_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        server = MemoryServer()
        first, second = await leader(server), Member(server, broker=2)
        turn = asyncio.ensure_future(second.membership.until_turn())
        await asyncio.sleep(LONG_SECONDS)
        assert not turn.done()
        assert said(caplog, "replica set orders is served by broker 1 at here:9092: this process waits") == 1
        first.end()
        await turn
        for each in (first, second):
            await each.membership.close()

    in_virtual_time(main)


def test_a_turn_that_comes_at_once_is_not_spoken_of(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        member = await leader(MemoryServer())
        await member.membership.close()

    in_virtual_time(main)
    assert not said(caplog, "waits")


def test_it_waits_for_the_arbiter(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        member = Member(MemoryServer())
        member.way.is_away = True
        turn = asyncio.ensure_future(member.membership.until_turn())
        await asyncio.sleep(LONG_SECONDS)
        assert not turn.done()
        assert said(caplog, "the arbiter does not answer (nobody answers): this start waits for it") == 1
        member.way.is_away = False
        await turn
        await member.membership.close()

    in_virtual_time(main)


def test_it_leads_in_the_epoch_of_the_record() -> None:
    async def main() -> None:
        server = MemoryServer()
        member = Member(server)
        await member.join()
        assert await member.membership.lead() == Elected(8, Grade.DRAFTS)
        assert (record_of(server).epoch, member.membership.record) == (8, record_of(server))
        assert not member.membership.lost.done()
        await member.membership.close()
        assert not [key for key in server.entries if key.startswith(("brokers/", "controller"))]

    in_virtual_time(main)


@pytest.mark.parametrize("change", [{"leader": 2}, {"leader_incarnation": 9}])
def test_it_is_over_once_the_record_names_another_life(
    change: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        server = MemoryServer()
        member = await leader(server)
        write_record(server, replace(record_of(server), **change))  # type: ignore[arg-type]
        await member.membership.lost
        with pytest.raises(LeaseLost, match="broker 1 does not lead its replica set any more"):
            await member.membership.settle()
        await member.membership.close()

    in_virtual_time(main)
    assert said(caplog, "the record of replica set orders says that this broker does not lead") == 1


def test_a_record_that_cannot_be_read_ends_no_leader(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        server = MemoryServer()
        member = await leader(server)
        sound = record_of(server)
        for _ in range(2):
            server.write(Attempt({}, {RECORD: b"{}"}))
            await asyncio.sleep(LEASE_SECONDS)
        assert not member.membership.lost.done()
        write_record(server, replace(sound, leader_incarnation=9))
        await member.membership.lost
        await member.membership.close()

    in_virtual_time(main)
    assert said(caplog, "This broker goes on leading") == 1


def test_a_loss_that_is_settled_is_not_in_the_record_any_more() -> None:
    async def main() -> None:
        server = MemoryServer()
        member = Member(server)
        await member.join(Grade.DURABLE)
        assert await member.membership.lead() == Elected(8, Grade.DURABLE)
        assert record_of(server).drafts == frozenset()
        await member.membership.settle()
        assert record_of(server).drafts == {1}
        before = member.way.attempts
        await member.membership.settle()
        assert member.way.attempts == before, "there is nothing to say"
        await member.membership.close()

    in_virtual_time(main)


def test_a_record_that_changes_while_a_loss_is_settled_keeps_both_changes() -> None:
    async def main() -> None:
        server = MemoryServer()
        member = await leader(server, Grade.DURABLE)

        def change(attempt: Attempt) -> None:
            if not record_of(server).since_ms:
                write_record(server, replace(record_of(server), since_ms=17))

        write_record(server, replace(record_of(server), since_ms=0))
        member.way.before_attempt = change
        await member.membership.settle()
        assert (record_of(server).drafts, record_of(server).since_ms) == (frozenset({1}), 17)
        await member.membership.close()

    in_virtual_time(main)


def test_a_doubt_is_told_once_and_its_end_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        member = await leader(MemoryServer())
        sure = []
        member.membership.on_sure = lambda: sure.append(member.membership.is_in_doubt)
        for times in (1, 2):
            member.way.is_away = True
            await asyncio.sleep(2 * LEASE_SECONDS)
            assert member.membership.is_in_doubt
            assert said(caplog, "the lease may have expired: all answers are held") == times
            assert said(caplog, "the lease is renewed: answers were held for") == times - 1
            sure.clear()
            member.way.is_away = False
            await asyncio.sleep(LEASE_SECONDS)
            assert not member.membership.is_in_doubt
            assert sure
            assert not any(sure)
            assert said(caplog, "the lease is renewed: answers were held for") == times
        assert not member.membership.lost.done()
        await member.membership.close()

    in_virtual_time(main)


def test_a_lease_that_is_gone_is_lost_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        member = await leader(MemoryServer())
        member.way.is_away = True
        await asyncio.sleep(LEASE_SECONDS)
        member.end()
        await asyncio.sleep(LEASE_SECONDS)
        member.way.is_away = False
        await member.membership.lost
        await asyncio.sleep(LEASE_SECONDS)
        assert member.membership.is_in_doubt
        await member.membership.close()

    in_virtual_time(main)
    assert said(caplog, "broker 1 has lost its lease at the arbiter") == 1


def test_a_lease_counts_from_the_moment_at_which_it_was_asked_for() -> None:
    """Its end by the clock of an arbiter that runs faster than ours has not come when we are in doubt."""

    async def main() -> None:
        member = await leader(MemoryServer())
        member.way.answer_seconds = LEASE_SECONDS / 8
        await asyncio.sleep(LEASE_SECONDS)
        member.way.is_away = True
        await until_in_doubt(member)
        held_seconds = asyncio.get_running_loop().time() - member.way.renewal_asked
        assert held_seconds - LOOK_SECONDS < LEASE_SECONDS * (1 - DRIFT) / (1 + DRIFT)
        await member.membership.close()

    in_virtual_time(main)


async def until_in_doubt(member: Member) -> None:
    while not member.membership.is_in_doubt:
        await asyncio.sleep(LOOK_SECONDS)


def test_a_bug_of_the_controller_ends_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(self: object) -> None:
        raise ValueError("a bug")

    async def main() -> None:
        member = Member(MemoryServer())
        monkeypatch.setattr("faircopy.arbiter.controller.Controller.run", fail)
        await member.join()
        await member.membership.lost
        await member.membership.close()

    in_virtual_time(main)
    assert said(caplog, "the membership of the replica set ends: a bug") == 1
    caplog.clear()


def test_two_processes_of_one_broker_take_turns() -> None:
    async def main() -> None:
        server = MemoryServer()
        first, second = await leader(server), Member(server)
        turn = asyncio.ensure_future(second.membership.until_turn())
        await asyncio.sleep(LONG_SECONDS)
        assert not turn.done()
        await first.membership.close()
        await turn
        second.note = first.note
        await second.join()
        assert await second.membership.lead() == Elected(9, Grade.DRAFTS)
        await second.membership.close()

    in_virtual_time(main)


def test_it_waits_for_a_former_life_that_does_not_lead() -> None:
    async def main() -> None:
        server, former = MemoryServer(), f"{BROKERS}1"
        write_record(server, SetRecord("the set's id", (1, 2), 2, 4, 12, {1: 5, 2: 4}))
        server.write(
            Attempt({}, {former: json.dumps(Registered(5, ADDRESS, "machine", 0)._asdict()).encode()})
        )
        member = Member(server)
        turn = asyncio.ensure_future(member.membership.until_turn())
        await asyncio.sleep(LONG_SECONDS)
        assert not turn.done()
        server.write(Attempt({}, {former: None}))
        await turn
        await member.membership.close()

    in_virtual_time(main)


def test_a_follower_lives_beside_the_leader() -> None:
    """It waits for no turn but its own former life, is never elected, and its leader finds its link."""

    async def main() -> None:
        server = MemoryServer()
        first = Member(server, replicas=(1, 2))
        await first.join()
        await first.membership.lead()
        found = asyncio.ensure_future(first.membership.registered(2))
        follower = Member(server, broker=2)
        await follower.membership.begin()
        assert follower.membership.follows and not first.membership.follows
        await follower.join(link="here:1234")
        assert (await found).link == "here:1234"
        assert follower.note.set_id == record_of(server).set_id and follower.membership.life == 1
        first.end()
        await asyncio.sleep(LONG_SECONDS)
        assert (record_of(server).leader, record_of(server).epoch) == (1, 8)
        again = Member(server, broker=2)
        again.note = follower.note
        turn = asyncio.ensure_future(again.membership.until_turn())
        await asyncio.sleep(LOOK_SECONDS)
        assert not turn.done()
        follower.end()
        await turn
        for each in (first, follower, again):
            await each.membership.close()

    in_virtual_time(main)
