"""Who may commit offsets: members in their generation, and others only where nobody is."""

from __future__ import annotations

from faircopy.groups.members import Identity
from faircopy.wire.error_codes import ErrorCode
from tests.unit.groups.scenario import ANONYMOUS, Scenario


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
