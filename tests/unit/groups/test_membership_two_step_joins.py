"""Two-step joins (KIP-394): new members are told their id first, and come back with it."""

from __future__ import annotations

from faircopy.groups.group_state import GroupState
from faircopy.wire.error_codes import ErrorCode
from tests.unit.groups.scenario import SESSION_MS, Scenario


def test_new_members_are_told_their_id_first() -> None:
    s = Scenario()
    told = s.answers[s.join(needs_known_id=True)]
    assert (told.error, told.generation) == (ErrorCode.MEMBER_ID_REQUIRED, -1)
    assert s.state() is GroupState.EMPTY
    assert not s.group.is_idle
    assert s.joined(s.join(told.member_id, needs_known_id=True)).member_id == told.member_id


def test_an_id_that_nobody_comes_back_with_is_forgotten() -> None:
    s = Scenario()
    told = s.answers[s.join(needs_known_id=True)]
    s.pass_ms(SESSION_MS)
    assert s.group.is_idle
    assert s.error(s.join(told.member_id)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_ids_given_away() -> None:
    s = Scenario()
    first, second = s.stable(None, None)
    told = s.answers[s.join(needs_known_id=True)]
    leading = s.join(first.member_id)
    waiting = s.join(second.member_id)
    assert s.is_waiting(leading)
    assert s.leave(told.member_id) == ErrorCode.NONE
    assert s.joined(leading).generation == s.joined(waiting).generation == 3


def test_a_rebalance_ends_when_an_id_given_away_is_forgotten() -> None:
    s = Scenario()
    (only,) = s.stable(None)
    s.join(needs_known_id=True)
    waiting = s.join(only.member_id)
    s.pass_ms(SESSION_MS - 1)
    assert s.is_waiting(waiting)
    s.pass_ms(1)
    assert s.joined(waiting).generation == 2
