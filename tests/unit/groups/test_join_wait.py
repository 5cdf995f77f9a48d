"""How long a rebalance waits for members."""

from __future__ import annotations

import pytest

from faircopy.groups.join_wait import JoinWait


@pytest.mark.parametrize("arrivals_ms", [[], [100], [100, 1_100, 2_100], list(range(0, 60_000, 500))])
def test_a_first_rebalance_waits_as_long_as_members_come_up_to_a_limit(arrivals_ms: list[int]) -> None:
    wait = JoinWait()
    wait.start_first(1_000, 5_500, 0)
    waiting = list(arrivals_ms)
    while True:
        assert wait.is_for_more and wait.deadline_ms is not None
        now_ms = wait.deadline_ms
        while waiting and waiting[0] <= now_ms:
            waiting.pop(0)
            wait.note_member()
        if not wait.has_gone_on(now_ms):
            break
    quiet_ms = next(
        (at for at in range(1_000, 5_500, 1_000) if not {*range(at - 999, at + 1)} & {*arrivals_ms}), 5_500
    )
    assert now_ms == quiet_ms
    wait.end()
    assert wait.deadline_ms is None
    assert not wait.is_for_more


@pytest.mark.parametrize("delay_ms", [0, 1_000])
def test_a_later_rebalance_waits_for_known_members_only(delay_ms: int) -> None:
    wait = JoinWait()
    wait.start_first(delay_ms, 5_000, 0)
    wait.start(5_000, 100)
    wait.note_member()
    assert (wait.deadline_ms, wait.is_for_more) == (5_100, False)
    assert not wait.has_gone_on(5_100)


def test_without_a_delay_a_first_rebalance_is_like_any_other() -> None:
    wait = JoinWait()
    wait.start_first(0, 5_000, 0)
    assert (wait.deadline_ms, wait.is_for_more) == (5_000, False)
