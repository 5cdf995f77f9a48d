"""The first rebalance of a group waits for more members, for a while."""

from __future__ import annotations

from faircopy.wire.error_codes import ErrorCode
from tests.unit.groups.scenario import Scenario


def test_a_first_rebalance_waits_for_more_members_while_they_come() -> None:
    s = Scenario(initial_rebalance_delay_ms=100)
    tickets = [s.join()]
    for _ in range(3):
        s.pass_ms(99)
        tickets.append(s.join())
    s.pass_ms(102)
    assert s.is_waiting(tickets[0])
    s.pass_ms(100)
    assert {s.joined(t).generation for t in tickets} == {1}
    assert len(s.joined(tickets[0]).members) == 4


def test_a_first_rebalance_waits_no_longer_than_its_rebalance_timeout() -> None:
    s = Scenario(initial_rebalance_delay_ms=100)
    first = s.join(rebalance_ms=250)
    for _ in range(5):
        s.pass_ms(60)
        s.join(rebalance_ms=250)
    assert not s.is_waiting(first)


def test_a_first_rebalance_of_nobody_ends_empty() -> None:
    s = Scenario(initial_rebalance_delay_ms=100)
    ticket = s.join()
    assert s.leave(next(iter(s.group.members))) == ErrorCode.NONE
    assert s.error(ticket) == ErrorCode.UNKNOWN_MEMBER_ID
    s.pass_ms(100)
    assert s.group.is_idle
