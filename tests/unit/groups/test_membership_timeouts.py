"""Members that are silent, or late to join or to sync, are left behind, and the group goes on."""

from __future__ import annotations

from faircopy.groups.group_state import GroupState
from faircopy.groups.members import Identity
from faircopy.groups.membership import NEW_MEMBER_JOIN_MS
from faircopy.wire.error_codes import ErrorCode
from tests.unit.groups.scenario import SESSION_MS, Scenario


def test_those_who_do_not_join_in_time_are_left_behind() -> None:
    s = Scenario()
    (first,) = s.stable(None)
    second = s.join(rebalance_ms=20_000)
    for _ in range(11):
        s.pass_ms(5_000)
        s.heartbeat(first)
    assert s.is_waiting(second)
    s.pass_ms(5_000)
    assert s.joined(second).leader_id == s.joined(second).member_id
    assert s.heartbeat(first) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_removed_when_its_session_ends() -> None:
    s = Scenario()
    first, second = s.stable(None, None)
    for _ in range(3):
        s.pass_ms(SESSION_MS // 2)
        s.heartbeat(first)
    assert s.heartbeat(first) == ErrorCode.REBALANCE_IN_PROGRESS
    assert s.heartbeat(second) == ErrorCode.UNKNOWN_MEMBER_ID
    assert s.joined(s.join(first.member_id)).generation == first.generation + 1


def test_commits_and_syncs_count_as_heartbeats() -> None:
    s = Scenario()
    (only,) = s.stable(None)
    for _ in range(3):
        s.pass_ms(SESSION_MS - 1)
        identity = Identity(only.member_id, None, only.generation)
        assert s.group.check_commit(identity, s.now_ms) == ErrorCode.NONE
        s.pass_ms(SESSION_MS - 1)
        assert s.error(s.sync(only)) == ErrorCode.NONE
    s.pass_ms(SESSION_MS)
    assert s.state() is GroupState.EMPTY


def test_a_leader_that_never_assigns_is_replaced() -> None:
    s = Scenario()
    s.stable(None)
    second = s.join()
    leader = s.joined(s.join(s.group.leader_id or ""))
    waiting = s.sync(s.joined(second))
    s.pass_ms(SESSION_MS)
    assert s.error(waiting) == ErrorCode.REBALANCE_IN_PROGRESS
    assert s.heartbeat(leader) == ErrorCode.UNKNOWN_MEMBER_ID
    again = s.joined(s.join(s.joined(second).member_id))
    assert again.leader_id == again.member_id


def test_a_member_that_never_syncs_is_removed() -> None:
    s = Scenario()
    s.stable(None)
    second = s.join()
    leader, lazy = s.joined(s.join(s.group.leader_id or "")), s.joined(second)
    s.sync(leader, {})
    for _ in range(12):
        s.pass_ms(5_000)
        s.heartbeat(leader), s.heartbeat(lazy)
    assert s.heartbeat(lazy) == ErrorCode.UNKNOWN_MEMBER_ID
    assert s.heartbeat(leader) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_synced_before_must_sync_again() -> None:
    s = Scenario()
    first, second = s.stable(None, None)
    leading, waiting = s.join(first.member_id), s.join(second.member_id)
    leader, lazy = s.joined(leading), s.joined(waiting)
    s.sync(leader, {})
    for _ in range(12):
        s.pass_ms(5_000)
        s.heartbeat(leader), s.heartbeat(lazy)
    assert s.heartbeat(lazy) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_new_member_does_not_wait_for_ever() -> None:
    s = Scenario(initial_rebalance_delay_ms=0)
    (first,) = s.stable(None)
    s.join(first.member_id, rebalance_ms=10 * NEW_MEMBER_JOIN_MS)
    leader = s.joined(s.last_ticket)
    s.sync(leader, {})
    second = s.join()
    for _ in range(NEW_MEMBER_JOIN_MS // 5_000):
        s.pass_ms(5_000)
        s.heartbeat(leader)
    assert s.error(second) == ErrorCode.UNKNOWN_MEMBER_ID
