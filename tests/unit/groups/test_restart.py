"""Groups outlive the broker: what is stored when, who is told when, and what a restart finds."""

from __future__ import annotations

from faircopy.groups.group_state import GroupState
from faircopy.groups.members import Identity
from faircopy.groups.storing import STORE_AGAIN_MS
from faircopy.wire.error_codes import ErrorCode
from tests.unit.groups.scenario import SESSION_MS, Scenario


def test_a_stable_group_is_found_again_as_it_was() -> None:
    scenario = Scenario()
    leader, other = scenario.stable(None, "i")
    before = scenario.group.metadata
    scenario.restart()
    assert scenario.group.metadata == before == scenario.kept
    assert scenario.group.state is GroupState.STABLE
    assert scenario.heartbeat(leader) == scenario.heartbeat(other, "i") == ErrorCode.NONE
    identity = Identity(other.member_id, "i", other.generation)
    assert scenario.group.check_commit(identity, scenario.now_ms) == ErrorCode.NONE
    again = scenario.sync(other, instance_id="i")
    assert scenario.answers[again].assignment == b"part of " + other.member_id.encode()


def test_a_follower_that_joins_again_after_a_restart_gets_the_same_generation() -> None:
    scenario = Scenario()
    _, other = scenario.stable(None, None)
    scenario.restart()
    assert scenario.joined(scenario.join(other.member_id)).generation == other.generation


def test_sessions_begin_anew_with_a_restart() -> None:
    scenario = Scenario()
    leader, _other = scenario.stable(None, None)
    scenario.pass_ms(SESSION_MS - 1)
    scenario.restart()
    scenario.pass_ms(SESSION_MS - 1)
    assert scenario.heartbeat(leader) == ErrorCode.NONE
    scenario.pass_ms(1)
    assert list(scenario.group.members) == [leader.member_id]
    assert scenario.heartbeat(leader) == ErrorCode.REBALANCE_IN_PROGRESS


def test_nobody_is_told_an_assignment_that_is_not_durable() -> None:
    scenario = Scenario()
    scenario.is_slow_to_store = True
    joined = scenario.joined(scenario.join())
    first = scenario.sync(joined, {joined.member_id: b"all"})
    assert scenario.is_waiting(first)
    second = scenario.sync(joined, {joined.member_id: b"other"})
    assert scenario.error(first) == ErrorCode.REBALANCE_IN_PROGRESS
    assert scenario.is_waiting(second)
    assert scenario.heartbeat(joined) == ErrorCode.NONE
    scenario.store()
    assert scenario.answers[second].assignment == b"all"
    assert scenario.group.is_stored


def test_an_assignment_that_a_rebalance_overtakes_is_told_nobody() -> None:
    scenario = Scenario()
    scenario.is_slow_to_store = True
    joined = scenario.joined(scenario.join())
    sync = scenario.sync(joined, {joined.member_id: b"all"})
    scenario.join()
    assert scenario.error(sync) == ErrorCode.REBALANCE_IN_PROGRESS
    scenario.store()
    assert scenario.group.state is GroupState.PREPARING


def test_an_assignment_that_can_not_be_stored_is_made_again() -> None:
    scenario = Scenario()
    scenario.is_slow_to_store = True
    joined = scenario.joined(scenario.join())
    sync = scenario.sync(joined, {joined.member_id: b"all"})
    scenario.store(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert scenario.error(sync) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert scenario.heartbeat(joined) == ErrorCode.REBALANCE_IN_PROGRESS
    again = scenario.joined(scenario.join(joined.member_id))
    assert again.generation == joined.generation + 1
    sync = scenario.sync(again, {joined.member_id: b"all"})
    scenario.store()
    assert scenario.error(sync) == ErrorCode.NONE


def test_a_static_members_new_id_is_told_when_it_is_durable() -> None:
    """Else, after a crash, its client would be fenced by its former self."""
    scenario = Scenario()
    scenario.stable("i", "j")
    scenario.is_slow_to_store = True
    back = scenario.join(instance_id="i")
    assert scenario.is_waiting(back)
    scenario.store()
    scenario.restart()
    assert scenario.heartbeat(scenario.joined(back), "i") == ErrorCode.NONE
    back = scenario.join(instance_id="i")
    scenario.store(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert scenario.error(back) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    back = scenario.join(instance_id="i")
    scenario.store()
    assert scenario.heartbeat(scenario.joined(back), "i") == ErrorCode.NONE


def test_a_crash_in_a_rebalance_leads_back_to_the_last_generation_that_was_assigned() -> None:
    scenario = Scenario()
    (leader,) = scenario.stable(None)
    scenario.is_slow_to_store = True
    scenario.join()
    joined = scenario.joined(scenario.join(leader.member_id))
    scenario.sync(joined, {joined.member_id: b"never told"})
    scenario.restart()
    assert scenario.heartbeat(joined) == ErrorCode.ILLEGAL_GENERATION
    assert scenario.heartbeat(leader) == ErrorCode.NONE


def test_an_empty_group_keeps_its_generation_and_protocol_type() -> None:
    scenario = Scenario()
    (leader,) = scenario.stable(None)
    scenario.is_slow_to_store = True
    assert scenario.leave(leader.member_id) == ErrorCode.NONE
    assert not scenario.group.is_idle
    scenario.store()
    assert scenario.group.is_idle
    scenario.restart()
    assert (scenario.group.state, scenario.group.protocol_type) == (GroupState.EMPTY, "consumer")
    assert scenario.group.is_idle
    assert scenario.joined(scenario.join(protocol_type="connect")).generation > leader.generation


def test_an_empty_group_that_can_not_be_stored_is_stored_later() -> None:
    scenario = Scenario()
    (leader,) = scenario.stable(None)
    scenario.is_slow_to_store = True
    scenario.leave(leader.member_id)
    scenario.store(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert not scenario.group.is_idle
    scenario.pass_ms(STORE_AGAIN_MS)
    scenario.store()
    assert scenario.group.is_idle
    assert scenario.kept is not None
    assert not scenario.kept.members


def test_a_group_that_never_had_an_assignment_leaves_no_trace() -> None:
    scenario = Scenario()
    joined = scenario.joined(scenario.join())
    scenario.leave(joined.member_id)
    assert scenario.group.is_idle
    assert scenario.kept is None


def test_a_group_that_is_deleted_while_it_is_stored_stays_deleted() -> None:
    scenario = Scenario()
    (leader,) = scenario.stable(None)
    scenario.is_slow_to_store = True
    scenario.leave(leader.member_id)
    assert scenario.group.delete() == ErrorCode.NONE
    scenario.store(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    scenario.pass_ms(STORE_AGAIN_MS)
    assert not scenario.storing
    assert scenario.group.is_idle
