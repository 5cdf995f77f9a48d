"""Whoever may be elected has all that was promised, whatever happens in whatever order."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.replication.set_world import BROKERS, JOURNALS, OWN, SetWorld

WEIGHTS = {
    "append": 8, "sync": 6, "ship": 6, "sync_follower": 3, "ack": 6, "hear": 8, "keep_up": 8,
    "restart": 3, "register": 6, "add": 6, "remove": 1, "confirm": 1, "land": 3, "read": 4,
}  # fmt: skip
EVENTS = 150
SEEDS = st.integers(0, (1 << 64) - 1)


def lived_through(seed: int, *, is_synced_first: bool) -> SetWorld:
    """A world to which everything has happened that this seed says. Nobody lacked anything at any time."""
    chance = Random(seed)
    world = SetWorld(is_synced_first=is_synced_first)
    for event in chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=EVENTS):
        world.happens(event, chance.randrange(9), chance.randrange(9))
        assert list(world.losses()) == []
    return world


@pytest.mark.parametrize("is_synced_first", [True, False])
@settings(max_examples=600, deadline=None)
@given(seed=SEEDS)
def test_nobody_who_may_lead_lacks_what_was_promised(is_synced_first: bool, seed: int) -> None:
    lived_through(seed, is_synced_first=is_synced_first)


@pytest.mark.parametrize("is_synced_first", [True, False])
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_all_is_durable_once_nothing_is_in_the_way(is_synced_first: bool, seed: int) -> None:
    world = lived_through(seed, is_synced_first=is_synced_first)
    world.settle()
    assert list(world.losses()) == []
    assert set(world.record.in_sync) == set(BROKERS)
    own = world.copies[OWN.broker]
    assert [world.promised[each].durable for each in JOURNALS] == [own.written[each] for each in JOURNALS]
