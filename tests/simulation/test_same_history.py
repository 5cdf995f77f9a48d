"""A seed gives the same run at any time and place."""

from __future__ import annotations

import os
import subprocess
import sys
from unittest import mock

import pytest

from tests.seeds import seeds_for
from tests.simulation.run import simulate

SEEDS = seeds_for("the same history", 2)


@pytest.mark.parametrize("number", range(len(SEEDS)))
def test_a_seed_gives_the_same_history_to_the_byte(number: int) -> None:
    seed = SEEDS[number]
    digests = {f"hash seed {number}": digest_in_another_process(seed, number) for number in ("1", "2")}
    with mock.patch.object(os, "getpid", return_value=123_456_789):
        digests["another process id"] = simulate(seed).digest
    assert len(set(digests.values())) == 1, (seed, digests)


def digest_in_another_process(seed: int, hash_seed: str) -> str:
    program = f"from tests.simulation.run import simulate; print(simulate({seed}).digest)"
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
