"""Seeds of the simulation: each one passes, and gives the same run at any time and place."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.seeds import seeds_for
from tests.simulation.run import simulate

SEEDS = seeds_for("the same history", 2)


@pytest.mark.timeout(900)
def test_seeds_are_good_and_meet_everything() -> None:
    arguments = [sys.executable, "-m", "tests.simulation", "--seeds", "200"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_gives_the_same_history_to_the_byte(seed: int) -> None:
    digests = {f"hash seed {number}": digest_in_another_process(seed, number) for number in ("1", "2")}
    digests["this process"] = simulate(seed).digest
    assert len(set(digests.values())) == 1, digests


def digest_in_another_process(seed: int, hash_seed: str) -> str:
    program = f"from tests.simulation.run import simulate; print(simulate({seed}).digest)"
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
