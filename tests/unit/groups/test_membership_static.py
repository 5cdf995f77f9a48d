"""Static members (KIP-345): they come back without a rebalance, and their former selves are fenced."""

from __future__ import annotations

from faircopy.groups.group_state import GroupState
from faircopy.wire.error_codes import ErrorCode
from tests.unit.groups.scenario import BOTH, SESSION_MS, STICKY, Scenario


def test_a_static_member_comes_back_without_a_rebalance() -> None:
    s = Scenario()
    leader, follower = s.stable("a", "b")
    back = s.joined(s.join(instance_id="b", needs_known_id=True))
    assert back.member_id != follower.member_id
    assert (back.generation, s.state()) == (follower.generation, GroupState.STABLE)
    assert s.answers[s.sync(back, instance_id="b")].assignment == f"part of {follower.member_id}".encode()
    assert s.heartbeat(follower, "b") == ErrorCode.FENCED_INSTANCE_ID
    assert s.heartbeat(leader, "a") == ErrorCode.NONE


def test_a_static_leader_that_comes_back_does_not_assign_anew() -> None:
    s = Scenario()
    leader, _ = s.stable("a", "b")
    back = s.joined(s.join(instance_id="a"))
    assert back.leader_id == leader.member_id != back.member_id
    assert back.members == ()
    assert s.group.leader_id == back.member_id


def test_a_static_leader_that_comes_back_leads_on_if_it_can_skip_the_assignment() -> None:
    """Nobody else would notice that a topic has more partitions (KIP-814)."""
    s = Scenario()
    leader, follower = s.stable("a", "b")
    back = s.joined(s.join(instance_id="a", can_skip_assignment=True))
    assert (back.generation, s.state()) == (leader.generation, GroupState.STABLE)
    assert back.skip_assignment
    assert back.leader_id == back.member_id != leader.member_id
    assert {member.member_id for member in back.members} == {back.member_id, follower.member_id}
    sync = s.answers[s.sync(back, instance_id="a")]
    assert sync.assignment == f"part of {leader.member_id}".encode()
    again = s.join(back.member_id, instance_id="a", can_skip_assignment=True)
    assert s.is_waiting(again)
    assert s.state() is GroupState.PREPARING
    s.join(follower.member_id, instance_id="b")
    assert not s.joined(again).skip_assignment


def test_a_static_leader_is_told_to_lead_once_its_new_id_is_durable() -> None:
    s = Scenario()
    s.stable("a", "b")
    s.is_slow_to_store = True
    back = s.join(instance_id="a", can_skip_assignment=True)
    assert s.is_waiting(back)
    s.store()
    assert s.joined(back).skip_assignment


def test_a_static_follower_that_comes_back_is_told_who_leads() -> None:
    s = Scenario()
    leader, _ = s.stable("a", "b")
    back = s.joined(s.join(instance_id="b", can_skip_assignment=True))
    assert (back.leader_id, back.members, back.skip_assignment) == (leader.member_id, (), False)


def test_a_static_member_that_comes_back_with_another_protocol_rebalances() -> None:
    s = Scenario()
    s.join(instance_id="a", protocols=BOTH)
    (only,) = (s.joined(s.last_ticket),)
    s.sync(only, {}, instance_id="a")
    back = s.joined(s.join(instance_id="a", protocols=STICKY))
    assert (back.generation, back.protocol_name) == (2, "sticky")


def test_the_former_self_of_a_waiting_static_member_is_fenced() -> None:
    s = Scenario()
    s.stable(None)
    waiting = s.join(instance_id="a")
    again = s.join(instance_id="a")
    assert s.error(waiting) == ErrorCode.FENCED_INSTANCE_ID
    assert s.is_waiting(again)


def test_static_members_outlive_a_rebalance_that_they_miss() -> None:
    s = Scenario()
    first, second = s.stable("a", "b")
    s.join(session_ms=100_000)
    s.join(first.member_id, instance_id="a", session_ms=100_000)
    leader = s.last_ticket
    for _ in range(12):
        s.pass_ms(5_000)
        s.heartbeat(second, "b")
    assert second.member_id in [m.member_id for m in s.joined(leader).members]


def test_members_leave_by_instance_id_alone() -> None:
    s = Scenario()
    first, second = s.stable("a", "b")
    assert s.leave("other", "b") == ErrorCode.FENCED_INSTANCE_ID
    assert s.leave("", "nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert s.leave("", "b") == ErrorCode.NONE
    assert s.heartbeat(second, "b") == ErrorCode.UNKNOWN_MEMBER_ID
    assert s.leave(first.member_id, "a") == ErrorCode.NONE
    assert s.state() is GroupState.EMPTY


def test_a_group_of_absent_static_members_waits_on() -> None:
    s = Scenario()
    first, second = s.stable("a", "b")
    s.pass_ms(SESSION_MS - 1)
    s.heartbeat(first, "a")
    s.pass_ms(1)
    assert s.heartbeat(second, "b") == ErrorCode.UNKNOWN_MEMBER_ID
    s.pass_ms(SESSION_MS)
    assert s.group.is_idle
