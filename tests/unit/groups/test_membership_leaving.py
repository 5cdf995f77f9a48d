"""Members leave, and a group that all have left may be deleted."""

from __future__ import annotations

from faircopy.groups.group_state import TRANSITIONS, GroupState
from faircopy.wire.error_codes import ErrorCode
from tests.unit.groups.scenario import ANONYMOUS, Scenario


def test_the_last_to_leave_leaves_an_empty_group() -> None:
    s = Scenario()
    first, second = s.stable(None, None)
    s.leave(first.member_id)
    assert s.heartbeat(second) == ErrorCode.REBALANCE_IN_PROGRESS
    s.leave(second.member_id)
    assert s.group.is_idle
    assert s.group.leader_id is None


def test_leaving_answers_what_the_member_waits_for() -> None:
    s = Scenario()
    s.stable(None)
    waiting = s.join()
    s.leave(next(reversed(s.group.members)))
    assert s.error(waiting) == ErrorCode.UNKNOWN_MEMBER_ID


def test_only_empty_groups_are_deleted() -> None:
    s = Scenario()
    (only,) = s.stable(None)
    assert s.group.delete() == ErrorCode.NON_EMPTY_GROUP
    s.leave(only.member_id)
    assert s.group.delete() == ErrorCode.NONE
    assert s.state() is GroupState.DEAD
    assert s.error(s.join()) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert s.error(s.sync(only)) == s.heartbeat(only) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert s.group.check_commit(ANONYMOUS, s.now_ms) == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_every_state_but_dead_can_be_left() -> None:
    assert {state for state, _ in TRANSITIONS} == set(GroupState) - {GroupState.DEAD}
    assert set(TRANSITIONS.values()) == set(GroupState)
