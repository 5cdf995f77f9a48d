"""A bounded sweep; `make crash-states` tries everything."""

from __future__ import annotations

import itertools
import random

import pytest

from faircopy.wire.error_codes import ErrorCode
from tests.crash_states.__main__ import outcome_of
from tests.crash_states.scenarios import (
    FORGET_SCENARIOS,
    HANDOVER_SCENARIOS,
    STEPS,
    STEPS_MAX,
    TABLE_SCENARIOS,
    TOPIC_SCENARIOS,
    Step,
    make_a_topic,
    make_topic_again,
    name_of,
    open_only,
    scenarios,
    time_out,
)
from tests.crash_states.stage import SETTINGS, Moment, Stage
from tests.crash_states.sweep import Bounds, play, sweep
from tests.seeds import seed_for
from tests.simulation import threads
from tests.simulation.producer import Refused

SEED = seed_for("crash states in the tests")
BOUNDS = Bounds(states=4, second=1, second_states=1)
CHOSEN = random.Random(SEED)
LONGER = CHOSEN.sample([steps for steps in scenarios() if len(steps) > 1], 12) + CHOSEN.sample(
    TABLE_SCENARIOS, 2
)
LONGER += [*CHOSEN.sample(FORGET_SCENARIOS, 2)]
LONGER += [HANDOVER_SCENARIOS[0], *CHOSEN.sample(HANDOVER_SCENARIOS[1:], 2)]
LONGER += [(make_a_topic, make_topic_again), *CHOSEN.sample(TOPIC_SCENARIOS, 2)]


@pytest.mark.parametrize("steps", {(step,): None for step in STEPS} | dict.fromkeys(LONGER), ids=name_of)
@pytest.mark.parametrize("shards", [1, 3])
def test_each_crash_state_comes_back(steps: tuple[Step, ...], shards: int) -> None:
    wrong = [outcome for outcome in sweep(steps, SEED, BOUNDS, shards) if outcome is not None]
    assert not wrong, (SEED, list(map(str, wrong)))


@pytest.mark.parametrize("steps", [(step,) for step in STEPS], ids=name_of)
def test_with_durable_acks_a_loss_of_power_takes_nothing_that_was_acked(steps: tuple[Step, ...]) -> None:
    bounds = BOUNDS._replace(is_durable=True)
    wrong = [outcome for outcome in sweep(steps, SEED, bounds) if outcome is not None]
    assert not wrong, (SEED, list(map(str, wrong)))


@pytest.mark.parametrize(
    "steps", CHOSEN.sample(list(itertools.product(STEPS, repeat=STEPS_MAX)), 10), ids=name_of
)
def test_what_comes_before_the_last_step_is_that_of_a_shorter_scenario(steps: tuple[Step, ...]) -> None:
    """Therefore a scenario need only crash in its last step."""
    longer = play(steps, SETTINGS, SEED)
    for length in range(1, len(steps)):
        shorter = play(steps[:length], SETTINGS, SEED)[-1]
        assert list(map(known_of, shorter[:-1])) == list(map(known_of, longer[length - 1]))


def known_of(moment: Moment) -> tuple[object, ...]:
    """What distinguishes one crash from another."""
    return moment.operation, moment.time, moment.history, moment.boots, moment.topics


@pytest.mark.parametrize("stuck_chance", [threads.STUCK_CHANCE, 0.3])
def test_every_scenario_can_be_played(stuck_chance: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scenario that ends with an error would end the sweep. So clients wait for a disk that is stuck."""
    monkeypatch.setattr(threads, "STUCK_CHANCE", stuck_chance)
    chosen = [*itertools.product(STEPS, repeat=2), (open_only, time_out, open_only), *HANDOVER_SCENARIOS]
    chosen += [steps for steps in TOPIC_SCENARIOS if len(steps) <= 2]
    for steps in chosen:
        assert play(steps, SETTINGS, SEED)[-1]


async def refused(_stage: Stage) -> None:
    """A step that can't be played."""
    raise Refused(ErrorCode.REQUEST_TIMED_OUT, is_certain=True)


def test_a_scenario_that_can_not_be_played_is_wrong() -> None:
    tried, (wrong,) = outcome_of((refused,), SEED, BOUNDS, shards=1)
    assert not tried
    assert "REQUEST_TIMED_OUT" in str(wrong)
