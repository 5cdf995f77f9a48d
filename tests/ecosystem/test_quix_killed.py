"""Quix Streams and the broker are killed with -9 while words are counted."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.ecosystem.counting import CountingProgram
from tests.ecosystem.quix import counting_by_quix, delete_state, ensure_counts, quix_program
from tests.seeds import seed_for

KILLS = 3
SENTENCES = 2_000
COMMIT_SECONDS = 5.0
"""So often Quix Streams commits by default."""


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_quix_streams_and_the_broker_are_killed(tmp_path: Path, guarantee: str) -> None:
    """With "exactly-once" each count comes once, and with "at-least-once" none is lost; the state is deleted
    before the last life of the program.
    """
    chance = random.Random(seed_for("Quix Streams and its broker are killed"))
    with counting_by_quix(tmp_path, guarantee) as work:
        for _ in range(KILLS):
            disturb(work, chance)
            work.program.kill()
            work.program.start()
        disturb(work, chance)
        work.until_complete()
        work.program.stop()
        delete_state(work.program)
        work.program.start()
        work.sentences.write(SENTENCES)
        work.until_complete()
        ensure_counts(work, guarantee)


def test_one_of_two_is_killed(tmp_path: Path) -> None:
    """Two instances share the partitions, and take over the state of each other: each count comes once."""
    chance = random.Random(seed_for("one of two instances of Quix Streams is killed"))
    guarantee = "exactly-once"
    with counting_by_quix(tmp_path, guarantee) as work:
        one, other = work.program, quix_program(work.broker.address, guarantee, tmp_path / "other")
        with other:
            for killed, alive in ((one, other), (other, one)):
                disturb(work, chance)
                killed.kill()
                work.sentences.write(SENTENCES)
                work.until_complete(alive)
                killed.start()
            disturb(work, chance)
            work.until_complete()
        work.ensure_each_counted_once()


def disturb(work: CountingProgram, chance: random.Random) -> None:
    """Kill the broker somewhere in the middle of the work."""
    work.sentences.write(SENTENCES)
    # No matter how long: this only varies the moment.
    time.sleep(chance.uniform(0, 2 * COMMIT_SECONDS))
    work.broker.restart()
    time.sleep(chance.uniform(0, 2 * COMMIT_SECONDS))
