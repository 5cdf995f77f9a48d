"""What was found once stays mended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.crash_states.sweep import Bounds
from tests.found import kept
from tests.found.keeping import keep_seed, keep_workload
from tests.found.kept import feed_inputs, still_wrong, wrong_seed, wrong_workload
from tests.mutants.in_child import is_found

SEEDS = [{"seed": seed, "has_arbiter": False, "machines": 1} for seed in range(20)]


def test_nothing_of_what_was_found_is_wrong_again() -> None:
    assert list(still_wrong()) == []


def test_inputs_that_were_found_are_taken() -> None:
    feed_inputs()


def test_a_file_says_what_to_play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = keep_seed(17, ["a message was lost"], tmp_path)
    assert json.loads(seed.read_text()) == {
        "seed": 17,
        "has_arbiter": False,
        "machines": 1,
        "said": ["a message was lost"],
    }
    keep_seed(17, [], tmp_path, has_arbiter=True)
    keep_seed(17, [], tmp_path, machines=3)
    workload = keep_workload(["plain", "commit"], 18, 3, Bounds(is_slow=True), [], tmp_path)
    assert json.loads(workload.read_text()) == {
        "steps": ["plain", "commit"],
        "seed": 18,
        "shards": 3,
        "is_slow": True,
        "is_durable": False,
        "said": [],
    }
    monkeypatch.setattr(kept, "wrong_seed", lambda facts: [str(list(facts.values())[:3])])
    monkeypatch.setattr(kept, "wrong_workload", lambda facts: [f"workload {facts['seed']}"])
    assert list(still_wrong(tmp_path)) == [
        "simulation-17.json: [17, False, 1]",
        "simulation-3-machines-17.json: [17, False, 3]",
        "simulation-arbiter-17.json: [17, True, 1]",
        "crash-states-plain-commit-18-3.json: workload 18",
    ]


def test_a_fault_that_comes_back_is_found() -> None:
    workload = {"steps": ["commit"], "seed": 1, "shards": 1, "is_slow": False, "is_durable": False}
    assert is_found("commit_what_was_lost", lambda: bool(wrong_workload(workload)))
    assert is_found("skip_the_journals_fsync", lambda: any(map(wrong_seed, SEEDS)))


def test_an_input_that_is_not_taken_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        """A target with a fault."""

        def load(self) -> object:
            """What raises the fault."""
            return lambda content: 1 / len(content)

    monkeypatch.setattr(kept, "TARGETS", {"broken": Broken()})
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "x").write_bytes(b"x")
    assert feed_inputs(tmp_path) == 1
    (tmp_path / "broken" / "empty").write_bytes(b"")
    with pytest.raises(ZeroDivisionError):
        feed_inputs(tmp_path)


def test_inputs_of_a_target_that_is_gone_are_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "x").write_bytes(b"x")
    with pytest.raises(KeyError, match="gone"):
        feed_inputs(tmp_path)
