"""Joins and syncs that are refused: odd timeouts and protocols, full groups, strangers, the late."""

from __future__ import annotations

import pytest

from faircopy.groups.group_state import GroupState
from faircopy.groups.members import JoinAnswer
from faircopy.wire.error_codes import ErrorCode
from tests.unit.groups.scenario import BOTH, RANGE, STICKY, Scenario


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
