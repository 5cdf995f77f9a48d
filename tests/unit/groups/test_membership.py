"""The membership machine, example by example."""

from __future__ import annotations

import pytest

from faircopy.groups.group_state import TRANSITIONS, GroupState
from faircopy.groups.members import Identity, JoinAnswer
from faircopy.groups.membership import NEW_MEMBER_JOIN_MS
from faircopy.wire.error_codes import ErrorCode
from tests.unit.groups.scenario import RANGE, SESSION_MS, Scenario

BOTH = (("range", b"r"), ("sticky", b"s"))
STICKY = (("sticky", b"s"),)


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


# -- two-step joins (KIP-394) --------------------------------------------------------------------------------


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


# -- the first rebalance -------------------------------------------------------------------------------------


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


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("session_ms", [0, -1, 5_999, 1_800_001])
def test_session_timeouts_have_limits(session_ms: int) -> None:
    s = Scenario()
    assert s.error(s.join(session_ms=session_ms)) == ErrorCode.INVALID_SESSION_TIMEOUT
    assert s.group.is_idle


@pytest.mark.parametrize(
    ("protocol_type", "protocols"), [("connect", RANGE), ("consumer", STICKY), ("", RANGE), ("consumer", ())]
)
def test_protocols_must_have_something_in_common(
    protocol_type: str, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    s = Scenario()
    s.stable(None)
    ticket = s.join(protocol_type=protocol_type, protocols=protocols)
    assert s.error(ticket) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert s.state() is GroupState.STABLE


def test_a_lone_member_may_change_its_protocols() -> None:
    s = Scenario()
    (only,) = s.stable(None)
    assert s.joined(s.join(only.member_id, protocols=STICKY)).protocol_name == "sticky"


def test_protocols_are_voted_for() -> None:
    s = Scenario()
    (first,) = s.stable(None)
    tickets = [s.join(protocols=tuple(reversed(BOTH))), s.join(protocols=tuple(reversed(BOTH)))]
    s.join(first.member_id, protocols=BOTH)
    assert {s.joined(t).protocol_name for t in tickets} == {"sticky"}


def test_groups_have_a_greatest_size() -> None:
    s = Scenario(members_max=2)
    first, _ = s.stable(None, None)
    assert s.error(s.join()) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert s.error(s.join(needs_known_id=True)) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert s.is_waiting(s.join(first.member_id))


def test_strangers_and_old_generations_are_refused() -> None:
    s = Scenario()
    (only,) = s.stable(None)
    stranger = JoinAnswer(ErrorCode.NONE, "stranger", only.generation)
    late = only._replace(generation=only.generation - 1)
    assert s.error(s.join("stranger")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert s.error(s.sync(stranger)) == s.heartbeat(stranger) == ErrorCode.UNKNOWN_MEMBER_ID
    assert s.error(s.sync(late)) == s.heartbeat(late) == ErrorCode.ILLEGAL_GENERATION
    assert s.leave("stranger") == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("protocol", [("connect", "range"), ("consumer", "sticky")])
def test_a_sync_must_name_the_groups_protocol(protocol: tuple[str, str]) -> None:
    s = Scenario()
    answer = s.joined(s.join())
    assert s.error(s.sync(answer, protocol=protocol)) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_sync_during_a_rebalance_is_sent_back() -> None:
    s = Scenario()
    (only,) = s.stable(None)
    s.join()
    assert s.error(s.sync(only)) == ErrorCode.REBALANCE_IN_PROGRESS


# -- static members (KIP-345) --------------------------------------------------------------------------------


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


# -- commits, leaving, deleting ------------------------------------------------------------------------------

ANONYMOUS = Identity("", None, -1)


def test_clients_without_a_group_commit_only_where_nobody_is() -> None:
    s = Scenario()
    assert s.group.check_commit(ANONYMOUS, s.now_ms) == ErrorCode.NONE
    s.stable(None)
    assert s.group.check_commit(ANONYMOUS, s.now_ms) == ErrorCode.UNKNOWN_MEMBER_ID
    assert s.group.check_commit(ANONYMOUS, s.now_ms, is_transactional=True) == ErrorCode.NONE


def test_members_commit_in_their_generation() -> None:
    s = Scenario()
    (only,) = s.stable(None)
    good = Identity(only.member_id, None, only.generation)
    assert s.group.check_commit(good._replace(generation=7), s.now_ms) == ErrorCode.ILLEGAL_GENERATION
    assert s.group.check_commit(good._replace(member_id="x"), s.now_ms) == ErrorCode.UNKNOWN_MEMBER_ID
    s.join()
    assert s.group.check_commit(good, s.now_ms) == ErrorCode.NONE
    again = s.joined(s.join(only.member_id))
    during = good._replace(generation=again.generation)
    assert s.group.check_commit(during, s.now_ms) == ErrorCode.REBALANCE_IN_PROGRESS
    assert s.group.check_commit(during, s.now_ms, is_transactional=True) == ErrorCode.NONE


def test_the_former_self_of_a_static_member_may_not_commit() -> None:
    s = Scenario()
    (only,) = s.stable("a")
    s.join(instance_id="a")
    former = Identity(only.member_id, "a", only.generation)
    assert s.group.check_commit(former, s.now_ms, is_transactional=True) == ErrorCode.FENCED_INSTANCE_ID


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
