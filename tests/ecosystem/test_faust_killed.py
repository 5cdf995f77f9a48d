"""Faust and the broker are killed with -9 while words are counted."""

from __future__ import annotations

import random
import time
from pathlib import Path

from tests.ecosystem.faust import counting_by_faust, faust_program
from tests.seeds import seed_for

KILLS = 3
SENTENCES = 1_000
WORK_SECONDS = 4.0


def test_faust_and_the_broker_are_killed(tmp_path: Path) -> None:
    """Faust processes at least once by default: each word comes to all its counts, and perhaps to more."""
    chance = random.Random(seed_for("Faust and its broker are killed"))
    with counting_by_faust(tmp_path) as work:
        for _ in range(KILLS):
            work.sentences.write(SENTENCES)
            time.sleep(chance.uniform(0, WORK_SECONDS))  # no matter how long: this only varies the moment
            work.broker.restart()
            time.sleep(chance.uniform(0, WORK_SECONDS))
            work.program.kill()
            work.program.start()
        work.sentences.write(SENTENCES)
        work.until_complete()
        work.program.stop()
        work.ensure_none_is_lost()


def test_one_of_two_is_killed(tmp_path: Path) -> None:
    """Two workers share the partitions, and take over the table of each other: none of the counts is lost."""
    with counting_by_faust(tmp_path) as work:
        one, other = work.program, faust_program(work.broker.address, tmp_path / "other")
        with other:
            for killed, alive in ((one, other), (other, one)):
                work.sentences.write(SENTENCES)
                work.until_complete()
                killed.kill()
                work.sentences.write(SENTENCES)
                work.until_complete(alive)
                killed.start()
        work.ensure_none_is_lost()
