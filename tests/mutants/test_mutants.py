"""Every mutant is found: by seeds of the simulation, by crash states of a workload, or by named tests."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash_states import scenarios
from tests.crash_states.scenarios import Step
from tests.crash_states.sweep import Bounds, sweep
from tests.mutants.mutants import MUTANTS
from tests.simulation.run import simulate

SEEDS_MAX = 60
SWEEPS_MAX = 10
BY_CRASH_STATES: dict[str, tuple[Step, ...]] = {
    "commit_what_was_lost": (scenarios.commit,),
    "abort_and_fence_in_two_entries": (scenarios.time_out,),
    "remember_the_forgotten_after_a_crash": (scenarios.commit, scenarios.forget),
    "ack_a_repeated_plain_batch_at_once": (scenarios.plain_repeated,),
    "ack_a_repeated_commit_at_once": (scenarios.commit_repeated,),
    "believe_a_decision_at_once": (scenarios.commit_jointly_twice,),
}
BY_TESTS = {
    "cut_damage_like_a_torn_tail": "tests/unit/journal",
    "leave_the_torn_tail": "tests/unit/journal",
    "apply_in_any_order": "tests/unit/transactions",
    "forget_sequences_in_checkpoints": "tests/unit/copier/test_partition.py",
    "skip_the_crc": "tests/unit/journal",
    "go_on_after_a_failed_fsync": "tests/crash_states/test_failures.py",
    "believe_the_page_cache": "tests/crash_states/test_failures.py",
    "recover_what_may_be_lost": "tests/crash_states/test_failures.py",
    "trust_drafts": "tests/unit/copier/test_partition.py",
    "lead_again_under_an_old_epoch": "tests/unit/copier/test_leader_epochs.py",
    "apply_again_in_any_order": "tests/unit/transactions/test_ranks.py",
    "take_a_fresh_rank_for_an_older_place": "tests/unit/transactions/test_ranks.py",
    "lose_spans_at_a_checkpoint": "tests/unit/copier/test_spans.py",
    "trim_spans_of_the_log": "tests/unit/copier/test_spans.py",
    "divide_what_does_not_fit": "tests/unit/hosting/test_largest_cut.py",
    "cut_at_the_high_watermarks": "tests/unit/hosting/test_cuts.py",
    "divide_a_batch": "tests/unit/hosting/test_batch_ends.py",
    "forget_what_is_finished_early": "tests/unit/transactions/test_finished.py",
    "forget_what_was_missed": "tests/simulation/test_led_anew.py",
    "tell_what_was_missed_in_any_order": "tests/simulation/test_led_anew.py",
    "forget_what_is_half_applied": "tests/simulation/test_led_anew.py",
    "forget_who_is_open": "tests/simulation/test_led_anew.py",
    "discard_what_others_may_know": "tests/simulation/test_led_anew.py",
    "leave_nothing_behind": "tests/unit/transactions/test_joint_groups.py",
    "let_former_runs_go_on": "tests/unit/transactions/test_joint_groups.py",
    "write_after_another_leads": "tests/unit/transactions/test_deposed.py",
}


def attributes() -> dict[tuple[str, str], object]:
    """The attributes of faircopy's modules and classes."""
    modules = {name: module for name, module in sys.modules.items() if name.startswith("faircopy.")}
    classes = {
        f"{value.__module__}.{value.__qualname__}": value
        for module in modules.values()
        for value in vars(module).values()
        if inspect.isclass(value) and value.__module__.startswith("faircopy.")
    }
    return {
        (owner, name): value
        for owner, each in (modules | classes).items()
        for name, value in vars(each).items()
        if callable(value) or isinstance(value, property)
    }


@pytest.fixture(autouse=True)
def _nothing_stays_broken() -> Iterator[None]:
    """A mutant that outlives its test would make others fail long after it."""
    before = attributes()
    yield
    after = attributes()
    assert [name for name, value in before.items() if after.get(name) is not value] == []


def test_there_are_enough() -> None:
    assert len(MUTANTS) >= 20
    files = Path(__file__).parent.glob("*.py")
    assert len(MUTANTS) == sum(file.read_text().count("\n@mutant\n") for file in files), "all are collected"
    assert {*BY_CRASH_STATES, *BY_TESTS} <= set(MUTANTS)


@pytest.mark.parametrize("name", MUTANTS)
def test_each_replaces_what_is_there(name: str) -> None:
    with MUTANTS[name]():
        pass


@pytest.mark.timeout(600)  # on a loaded machine; being interrupted would leave the simulated disk mounted
@pytest.mark.parametrize("name", sorted({*MUTANTS} - {*BY_CRASH_STATES, *BY_TESTS}))
def test_simulation_finds(name: str) -> None:
    with MUTANTS[name]():
        assert any(not simulate(seed).is_good for seed in range(SEEDS_MAX))


@pytest.mark.parametrize("name", BY_CRASH_STATES)
def test_crash_states_find(name: str) -> None:
    with MUTANTS[name]():
        assert any(any(sweep(BY_CRASH_STATES[name], seed, Bounds(second=0))) for seed in range(SWEEPS_MAX))


@pytest.mark.parametrize("name", BY_TESTS)
def test_tests_find(name: str) -> None:
    arguments = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "tests.mutants.plugin", BY_TESTS[name]]
    done = subprocess.run(
        arguments, env=os.environ | {"MUTANT": name}, capture_output=True, text=True, check=False
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
