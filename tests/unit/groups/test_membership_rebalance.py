"""Members come, join again, and share a generation: who leads, who waits for whom, who is told what."""

from __future__ import annotations

from faircopy.groups.group_state import GroupState
from faircopy.wire.error_codes import ErrorCode
from tests.unit.groups.scenario import Scenario


def test_a_first_member_leads_and_gets_its_assignment() -> None:
    s = Scenario()
    answer = s.joined(s.join())
    assert (answer.generation, answer.leader_id, answer.protocol_name) == (1, answer.member_id, "range")
    assert [(m.member_id, m.metadata) for m in answer.members] == [(answer.member_id, b"topics")]
    assert s.state() is GroupState.COMPLETING
    sync = s.answers[s.sync(answer, {answer.member_id: b"mine"}, protocol=("consumer", "range"))]
    assert sync == (ErrorCode.NONE, "consumer", "range", b"mine")
    assert s.state() is GroupState.STABLE


def test_a_second_member_makes_a_new_generation() -> None:
    s = Scenario()
    (first,) = s.stable(None)
    second = s.join()
    assert s.is_waiting(second)
    assert s.heartbeat(first) == ErrorCode.REBALANCE_IN_PROGRESS
    leader, follower = s.joined(s.join(first.member_id)), s.joined(second)
    assert leader.generation == follower.generation == 2
    assert leader.leader_id == follower.leader_id == first.member_id
    assert [m.member_id for m in leader.members] == [leader.member_id, follower.member_id]
    assert list(follower.members) == []


def test_followers_wait_for_the_leaders_assignment() -> None:
    s = Scenario()
    s.stable(None)
    second = s.join()
    leader = s.joined(s.join(s.group.leader_id or ""))
    follower = s.joined(second)
    waiting = s.sync(follower)
    assert s.is_waiting(waiting)
    assert s.heartbeat(follower) == ErrorCode.NONE
    s.sync(leader, {follower.member_id: b"yours", "stranger": b"?"})
    assert s.answers[waiting].assignment == b"yours"


def test_a_join_again_changes_nothing_for_a_follower_but_rebalances_for_a_leader() -> None:
    s = Scenario()
    leader, follower = s.stable(None, None)
    again = s.joined(s.join(follower.member_id))
    assert (again.generation, again.members) == (follower.generation, ())
    assert s.state() is GroupState.STABLE
    assert s.is_waiting(s.join(leader.member_id))
    assert s.state() is GroupState.PREPARING


def test_a_lost_join_answer_can_be_asked_for_again() -> None:
    s = Scenario()
    answer = s.joined(s.join())
    assert s.joined(s.join(answer.member_id)) == answer


def test_changed_metadata_rebalances() -> None:
    s = Scenario()
    _, follower = s.stable(None, None)
    assert s.is_waiting(s.join(follower.member_id, protocols=(("range", b"more"),)))


def test_a_join_repeated_while_it_waits_answers_the_earlier_one() -> None:
    s = Scenario()
    s.stable(None)
    first = s.join()
    member_id = next(reversed(s.group.members))
    second = s.join(member_id)
    assert s.error(first) == ErrorCode.REBALANCE_IN_PROGRESS
    assert s.is_waiting(second)
