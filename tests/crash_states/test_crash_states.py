"""A bounded sweep; `make crash-states` tries all."""

from __future__ import annotations

import random
import secrets

import pytest

from tests.crash_states.scenarios import STEPS, TABLE_SCENARIOS, Step, name_of, scenarios
from tests.crash_states.sweep import Bounds, sweep

SEED = secrets.randbits(48)
BOUNDS = Bounds(states=4, second=1, second_states=1)
CHOSEN = random.Random(SEED)
LONGER = CHOSEN.sample([steps for steps in scenarios() if len(steps) > 1], 12) + CHOSEN.sample(TABLE_SCENARIOS, 2)


@pytest.mark.parametrize("steps", {(step,): None for step in STEPS} | dict.fromkeys(LONGER), ids=name_of)
def test_each_crash_state_comes_back(steps: tuple[Step, ...]) -> None:
    wrong = [outcome for outcome in sweep(steps, SEED, BOUNDS) if outcome is not None]
    assert not wrong, (SEED, list(map(str, wrong)))
