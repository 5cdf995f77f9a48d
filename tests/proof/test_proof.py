"""The command, with stages that take seconds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.fetch.needed import needed
from tests.flink.installed import FLINK
from tests.models.tlc import find_tlc
from tests.proof import __main__ as proof
from tests.proof.results import from_json
from tests.proof.stages import STAGES, Stage

GOOD = Stage("good", "", "timeit -n 1 -r 1 pass", "")
BAD = Stage("bad", "", "no_such_module", "")


@pytest.fixture(autouse=True)
def logs_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests run beside each other, and a stage has one log."""
    monkeypatch.setattr(proof, "LOGS", tmp_path / "logs")


@pytest.mark.parametrize("name", [stage.name for stage in STAGES if proof.has_work(stage)])
def test_each_stage_says_in_its_last_line_what_was_tried(name: str, tmp_path: Path) -> None:
    if name == "models":
        needed(find_tlc)
    if name == "flink":
        needed(FLINK.find)
    done = CliRunner().invoke(proof.main, [name, "--small", "--results", str(tmp_path)])
    assert done.exit_code == 0, done.output
    (result,) = from_json((tmp_path / "proof.json").read_text()).values()
    assert re.search(r"[1-9][\d,]* (seeds|workloads|runs|passed|kills|targets)\b", result.said), result.said


def test_a_stage_runs_and_the_page_keeps_its_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = CliRunner().invoke(proof.main, ["simulation", "--small", "--results", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "2 seeds, 0 failing" in done.output
    (result,) = from_json((tmp_path / "proof.json").read_text()).values()
    assert result.said in (tmp_path / "PROOF.md").read_text()
    monkeypatch.setattr(proof, "STAGES", (GOOD,))
    done = CliRunner().invoke(proof.main, ["--results", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert list(from_json((tmp_path / "proof.json").read_text())) == ["simulation", "good"]


def test_a_stage_that_finds_something_is_red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "STAGES", (GOOD, BAD))
    done = CliRunner().invoke(proof.main, ["--results", str(tmp_path)])
    assert done.exit_code == 1
    results = from_json((tmp_path / "proof.json").read_text())
    assert [result.is_good for result in results.values()] == [True, False]
    assert "no_such_module" in results["bad"].said


def test_a_stage_that_is_not_there_is_refused() -> None:
    done = CliRunner().invoke(proof.main, ["no-such-stage"])
    assert done.exit_code == 2
    assert "there are simulation," in done.output
