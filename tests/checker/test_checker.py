"""The checker finds every kind of mistake, and reports none in a clean history."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

from tests.checker.check import Anomaly, Verdict, check
from tests.checker.history import Final, read_history, write_history
from tests.checker.mutations import MUTATIONS, Mutation
from tests.checker.perfect import PerfectBroker
from tests.seeds import seeds_for

TRANSACTIONS = 60
MANY_TRANSACTIONS = 100_000
SEEDS = seeds_for("checker", 20)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_clean_history_gives_no_finding(seed: int) -> None:
    assert check(PerfectBroker(seed).run(TRANSACTIONS)) == (Verdict.VALID, [])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_every_mutation_is_found(mutation: Mutation, seed: int) -> None:
    chosen = random.Random(seed)
    mutated = None
    while mutated is None:  # not every history has a place for every mistake
        mutated = mutation(PerfectBroker(chosen.getrandbits(32)).run(TRANSACTIONS), chosen)
    verdict, findings = check(mutated)
    assert verdict is Verdict.INVALID
    assert MUTATIONS[mutation] in {finding.anomaly for finding in findings}
    assert all(finding.explanation for finding in findings)


def test_every_anomaly_has_its_mutation() -> None:
    assert set(MUTATIONS.values()) == set(Anomaly)


def test_the_page_says_how_many() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs/RELIABILITY.md").read_text().split())
    assert f"It knows {len(Anomaly)} anomalies" in page
    assert f"tested with {len(MUTATIONS)} kinds of mutations" in page


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_a_history_that_ends_too_early_is_unknown(seed: int) -> None:
    history = [each for each in PerfectBroker(seed).run(TRANSACTIONS) if not isinstance(each, Final)]
    assert check(history) == (Verdict.UNKNOWN, [])


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_a_history_survives_its_file(seed: int) -> None:
    history = PerfectBroker(seed).run(TRANSACTIONS)
    file = io.StringIO()
    write_history(history, file)
    file.seek(0)
    assert list(read_history(file)) == history


def test_a_long_history_is_checked() -> None:
    history = PerfectBroker(SEEDS[0]).run(MANY_TRANSACTIONS, snapshot_chance=0)
    assert check(history) == (Verdict.VALID, [])
