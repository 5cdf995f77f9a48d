"""A bounded sweep; `make crash-states` tries all."""

from __future__ import annotations

import random
import secrets

import pytest

from tests.crash_states.scenarios import STEPS, Step, name_of, scenarios
from tests.crash_states.sweep import Bounds, sweep

SEED = secrets.randbits(48)
BOUNDS = Bounds(states=4, second=1, second_states=1)
LONGER = random.Random(SEED).sample([steps for steps in scenarios() if len(steps) > 1], 12)


@pytest.mark.parametrize("steps", [*((step,) for step in STEPS), *LONGER], ids=name_of)
def test_each_crash_state_comes_back(steps: tuple[Step, ...]) -> None:
    wrong = [outcome for outcome in sweep(steps, SEED, BOUNDS) if outcome is not None]
    assert not wrong, (SEED, list(map(str, wrong)))
