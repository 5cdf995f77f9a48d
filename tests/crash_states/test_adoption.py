"""The start with which a directory comes to its replica set may be cut short anywhere."""

from __future__ import annotations

from itertools import product

import pytest

from tests.crash_states.replica_set import Trouble, Way, WriteFate, counted, play
from tests.simulation.aftermath import Fate

SEEDS = (1, 2)
"""A write to the state store that a crash meets may be there or not: they differ in that."""
GOES_BACK = (False, True)


def directions(way: Way) -> tuple[bool, ...]:
    """Whether the directory is given back to its former broker after the trouble."""
    return GOES_BACK if way is Way.MOVES else (False,)


@pytest.mark.parametrize("way", Way)
def test_the_process_is_killed_at_an_io(way: Way) -> None:
    for seed, goes_back in product(SEEDS, directions(way)):
        ios, _ = counted(way, seed)
        assert ios > 5
        for at in range(1, ios + 1):
            play(way, Trouble(at, is_killed=True), seed, goes_back=goes_back)


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.MIXED])
@pytest.mark.parametrize("way", Way)
def test_the_power_is_lost_at_an_io(way: Way, fate: Fate) -> None:
    (seed, _), ios = SEEDS, counted(way, SEEDS[0])[0]
    for at in range(1, ios + 1):
        play(way, Trouble(at, fate=fate), seed)


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("fate", WriteFate)
@pytest.mark.parametrize("way", Way)
def test_a_write_to_the_arbiter_is_not_answered(way: Way, fate: WriteFate, *, is_killed: bool) -> None:
    (seed, _), (_, writes) = SEEDS, counted(way, SEEDS[0])
    assert writes > 4
    for at, goes_back in product(range(1, writes + 1), directions(way)):
        play(way, Trouble(at, fate, is_killed=is_killed), seed, goes_back=goes_back)
