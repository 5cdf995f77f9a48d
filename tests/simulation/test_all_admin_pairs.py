"""Two administrators at once: each pair of requests, interrupted at each of its moments."""

from __future__ import annotations

import pytest

from tests.simulation.admin_model import SIDES
from tests.simulation.admin_pairs import moments_of


@pytest.mark.parametrize("other", SIDES)
@pytest.mark.parametrize("one", SIDES)
def test_two_at_once_come_to_what_one_after_the_other_does(one: str, other: str) -> None:
    moment, moments = 0, 1
    while moment < moments:
        moments = moments_of(one, other, moment)
        moment += 1
