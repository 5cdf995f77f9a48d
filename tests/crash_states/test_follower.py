"""A journal that is copied entry by entry folds into the same, whenever leader and follower crash."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from faircopy.journal.errors import DamagedJournal
from tests.crash_states.follower import Follower, folds_on, journals_on
from tests.crash_states.scenarios import (
    HANDOVER_SCENARIOS,
    JOINT_SCENARIOS,
    STEPS,
    STEPS_MAX,
    TOPIC_SCENARIOS,
    Step,
    checkpoint,
    commit_with_offsets,
    name_of,
    scenarios,
)
from tests.crash_states.stage import SETTINGS, Moment
from tests.crash_states.states import states_of
from tests.crash_states.sweep import killed, play, recovery_of, what_is_wrong, without_power
from tests.seeds import seed_for
from tests.simulation.aftermath import Fate
from tests.simulation.lying_disk import LyingDisk
from tests.simulation.refold import compare

SEED = seed_for("followers")
CHOSEN = random.Random(SEED)
# What a leader has reclaimed after a checkpoint can't be copied from its journals.
WHOLE = [steps for steps in scenarios() if checkpoint not in steps]
SCENARIOS: list[tuple[Step, ...]] = [(step,) for step in STEPS]
SCENARIOS += CHOSEN.sample([steps for steps in WHOLE if len(steps) == STEPS_MAX], 6)
SCENARIOS += [
    each
    for those in (HANDOVER_SCENARIOS, JOINT_SCENARIOS, TOPIC_SCENARIOS)
    for each in CHOSEN.sample([steps for steps in those if checkpoint not in steps], 2)
]
MOMENTS = 3


@pytest.mark.parametrize("steps", dict.fromkeys(SCENARIOS), ids=name_of)
def test_a_copy_folds_into_the_same(steps: tuple[Step, ...]) -> None:
    chosen = random.Random(SEED)
    moments = [moment for of_step in play(steps, SETTINGS, SEED) for moment in of_step]
    for moment in chosen.sample(moments, min(MOMENTS, len(moments))):
        follower = Follower(moments[0].disk, moments[0].contents, chosen)
        copy_with_a_crash(follower, synced(moment), chosen)
        left = without_power(SETTINGS, moment, chosen.choice(list(states_of(moment.disk, chosen))))
        leader = recovery_of(SETTINGS, chosen.choice([left, killed(moment)]), chosen)[-1]
        copy_with_a_crash(follower, leader.disk, chosen)
        assert differences(follower, leader) == [], (SEED, moment.operation)


@pytest.mark.parametrize("steps", dict.fromkeys(SCENARIOS), ids=name_of)
def test_a_broker_goes_on_where_the_leader_has_crashed(steps: tuple[Step, ...]) -> None:
    """On what was copied: all that the leader had synced."""
    chosen = random.Random(SEED)
    moments = [moment for of_step in play(steps, SETTINGS, SEED) for moment in of_step]
    for moment in chosen.sample(moments, min(MOMENTS, len(moments))):
        follower = Follower(moments[0].disk, moments[0].contents, chosen)
        copy_with_a_crash(follower, synced(moment), chosen)
        follower.lead_later()
        lost = without_power(SETTINGS, moment, follower.disk)
        why = what_is_wrong(SETTINGS, replace(lost, contents=follower.contents), chosen.getrandbits(64))
        assert not why, (SEED, moment.operation, why)


def synced(moment: Moment) -> LyingDisk:
    """The disk of a leader with what it has synced, which is all that it ships."""
    return moment.disk.crash(Fate.LOST, random.Random(0))


def copy_with_a_crash(follower: Follower, disk: LyingDisk, chosen: random.Random) -> None:
    """Bring a follower to where a leader is. It loses power on the way, at any of its operations, and again
    when it has copied only some.
    """
    source = journals_on(disk)
    operations = Follower(follower.disk, follower.contents, chosen).live(source)
    follower.live(source, crash_at=chosen.randint(1, operations + 1), fate=chosen.choice(list(Fate)))
    follower.live(source, chosen.random(), fate=chosen.choice(list(Fate)))
    follower.live(source)


def differences(follower: Follower, leader: Moment) -> list[str]:
    """What the leader's journals fold into, and those of the follower do not."""
    journals = {path: source.identity for path, source in journals_on(leader.disk).items()}
    expected = folds_on(leader.disk, leader.contents, journals, is_raw=False)
    found = folds_on(follower.disk, follower.contents, journals, is_raw=True)
    return list(compare("the fold", expected, found))


def test_a_fold_that_differs_is_noticed() -> None:
    """The last entry of a follower is missing."""
    moments = play((commit_with_offsets,), SETTINGS, SEED)[0]
    follower = Follower(moments[0].disk, moments[0].contents, CHOSEN)
    source = journals_on(moments[-1].disk)
    follower.live({path: each._replace(entries=each.entries[:-1]) for path, each in source.items()})
    found = differences(follower, moments[-1])
    assert any("end is" in each for each in found)
    assert any("log is" in each for each in found)
    assert any("_metadata/0, transactions" in each for each in found)


def test_nobody_leads_any_journal_under_an_epoch_that_was_used() -> None:
    last = play((commit_with_offsets,), SETTINGS, SEED)[0][-1]
    journals = {path: source.identity for path, source in journals_on(last.disk).items()}
    assert len({path.parent.name for path in journals}) >= 4, "of each kind"
    for path, identity in journals.items():
        for is_raw in (False, True):
            with pytest.raises(
                DamagedJournal, match="has entries of leader epoch 1, but the next epoch is 1"
            ):
                folds_on(last.disk, last.contents, {path: identity}, is_raw=is_raw, leader_epoch=1)
            assert folds_on(last.disk, last.contents, {path: identity}, is_raw=is_raw, leader_epoch=2)
