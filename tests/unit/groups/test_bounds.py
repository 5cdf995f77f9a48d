"""How much members may say, and that nothing is held for clients that are gone."""

from __future__ import annotations

import pytest

from faircopy.groups.group_state import GroupState
from faircopy.wire.error_codes import ErrorCode
from tests.unit.groups.scenario import SESSION_MS, Scenario

LIMIT = 100_000


def saying(size: int) -> tuple[tuple[str, bytes], ...]:
    return (("range", bytes(size)),)


def test_members_that_say_too_much_together_are_refused() -> None:
    scenario = Scenario(bytes_max=LIMIT)
    scenario.join(protocols=saying(60_000))
    assert scenario.error(scenario.join(protocols=saying(60_000))) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert scenario.is_waiting(scenario.join(protocols=saying(10_000)))


@pytest.mark.parametrize("instance_id", [None, "i"])
def test_a_member_that_joins_again_does_not_count_twice(instance_id: str | None) -> None:
    scenario = Scenario(bytes_max=LIMIT)
    joined = scenario.joined(scenario.join(protocols=saying(60_000), instance_id=instance_id))
    again = scenario.join(joined.member_id, protocols=saying(70_000), instance_id=instance_id)
    assert scenario.error(again) == ErrorCode.NONE
    too_much = scenario.join(joined.member_id, protocols=saying(LIMIT), instance_id=instance_id)
    assert scenario.error(too_much) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert scenario.group.held_bytes < LIMIT


def test_many_protocols_and_long_names_count() -> None:
    scenario = Scenario(bytes_max=LIMIT)
    many = tuple((f"{number}", b"") for number in range(1_000))
    assert scenario.error(scenario.join(protocols=many)) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert scenario.error(scenario.join(instance_id="i" * LIMIT)) == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_an_assignment_that_is_too_large_is_refused() -> None:
    scenario = Scenario(bytes_max=LIMIT)
    joined = scenario.joined(scenario.join())
    too_large = scenario.sync(joined, {joined.member_id: bytes(LIMIT)})
    assert scenario.error(too_large) == ErrorCode.GROUP_MAX_SIZE_REACHED
    others = scenario.sync(joined, {joined.member_id: b"all", "nobody": bytes(LIMIT)})
    assert scenario.error(others) == ErrorCode.NONE
    assert scenario.group.held_bytes < LIMIT


def test_a_new_member_goes_with_its_client() -> None:
    scenario = Scenario(initial_rebalance_delay_ms=100)
    ticket = scenario.join(protocols=saying(LIMIT))
    scenario.run(scenario.group.abandon(ticket, scenario.now_ms))
    assert scenario.group.held_bytes == 0
    scenario.pass_ms(100)
    assert scenario.group.is_idle


def test_others_do_not_wait_for_a_member_that_is_gone() -> None:
    scenario = Scenario()
    (leader,) = scenario.stable(None)
    ticket = scenario.join(protocols=saying(LIMIT), instance_id="i")
    again = scenario.join(leader.member_id)
    assert scenario.joined(again).generation == leader.generation + 1
    assert scenario.joined(ticket)
    late = scenario.join()
    scenario.run(scenario.group.abandon(late, scenario.now_ms))
    assert scenario.group.state is GroupState.PREPARING
    assert scenario.is_waiting(late)
    assert len(scenario.group.members) == 2


def test_a_former_member_whose_client_is_gone_has_its_session_to_come_back() -> None:
    scenario = Scenario()
    leader, other = scenario.stable(None, None)
    ticket = scenario.join(other.member_id, protocols=(("range", b"changed"),))
    scenario.run(scenario.group.abandon(ticket, scenario.now_ms))
    assert scenario.heartbeat(leader) == ErrorCode.REBALANCE_IN_PROGRESS
    assert other.member_id in scenario.group.members
    scenario.pass_ms(SESSION_MS - 1)
    assert scenario.heartbeat(leader) == ErrorCode.REBALANCE_IN_PROGRESS
    scenario.pass_ms(1)
    assert other.member_id not in scenario.group.members
