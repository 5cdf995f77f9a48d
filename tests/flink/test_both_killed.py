"""The job and the broker are killed with -9 while Flink copies: each message is there, and once."""

from __future__ import annotations

import random
import time
from pathlib import Path

from tests.flink.copying import Copying, copying
from tests.java.compiled import Installed
from tests.seeds import seed_for

KILLS = 5
RECOVERY_SECONDS = 2.0
"""About so long the job aborts and commits what it finds after a restart."""


def test_both_are_killed(flink: Installed, tmp_path: Path, naming: str) -> None:
    """The broker is away when the job comes back, or goes while the job commits and aborts."""
    chance = random.Random(seed_for("Flink and its broker are killed"))
    with copying(flink, tmp_path, naming) as work:
        work.disturbed(KILLS, lambda: kill_both(work, chance))
        work.check()
        assert work.transactions_gone_on > 0


def kill_both(work: Copying, chance: random.Random) -> None:
    """Kill the broker before, or after the job was started again."""
    if chance.random() < 0.5:
        work.broker.kill()
        work.job.restart()
        work.broker.start()
    else:
        work.job.restart()
        time.sleep(chance.uniform(0, RECOVERY_SECONDS))  # no matter how long: this only varies the moment
        work.broker.restart()
