"""Real runs of pytest, as a job starts them: what fails beside others, what is tried again, what is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs import __main__ as jobs
from tests.jobs.outcome import Outcome
from tests.jobs.table import Job

PASSES = "def test_passes() -> None:\n    pass\n"
FAILS = "def test_fails() -> None:\n    raise AssertionError\n"
FAILS_ONCE = """\
from pathlib import Path

def test_fails_once() -> None:
    mark = Path(__file__).with_suffix(".tried")
    is_first = not mark.exists()
    mark.touch()
    assert not is_first
"""
FINDS = """\
from tests.finding import Finding

def test_finds() -> None:
    raise Finding("a message was lost")
"""
FAILS_IN_TEARDOWN = """\
import pytest

@pytest.fixture
def broker():
    yield
    raise AssertionError("not closed")

def test_passes_but_for_its_fixture(broker) -> None:
    pass
"""
JOB = Job("some", "", ())
FIRST = Job("first", "", (), is_deterministic=True)
KILLS_ITS_PROCESS = "import os\n\ndef test_dies() -> None:\n    os.kill(os.getpid(), 9)\n"


@pytest.fixture
def run_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunJob]:
    """Runs a job of one file with this content."""
    monkeypatch.setattr(jobs, "ROOT", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    (tmp_path / "test_it.py").write_text("")
    monkeypatch.setattr(jobs, "files_of", lambda job: ["test_it.py"])
    monkeypatch.setattr(jobs, "CHECK", FIRST)
    yield RunJob(tmp_path / "test_it.py")


class RunJob:
    """Writes the content of a test file, and runs it as a job does."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, content: str, job: Job) -> jobs.Outcomes:
        self._path.write_text(content)
        outcomes, seconds = jobs.run_all([job], workers=2)
        jobs.try_again(outcomes)
        jobs.report([job], outcomes, seconds)
        return outcomes


def test_what_passes_is_green(run_job: RunJob, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_job(PASSES, JOB)[JOB].is_good
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 0 failed, 0 skipped"


def test_what_fails_twice_is_red(run_job: RunJob, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run_job(PASSES + FAILS, JOB)[JOB]
    assert outcome.failed == ["test_it.py::test_fails"]
    said = capsys.readouterr().out.splitlines()
    assert "red: some: test_it.py::test_fails" in said
    assert "again: make test JOB=some" in said
    assert said[-1] == "1 passed, 1 failed, 0 skipped"


def test_what_fails_once_is_unsteady(run_job: RunJob, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_job(PASSES + FAILS_ONCE, JOB)[JOB].is_good
    said = capsys.readouterr().out.splitlines()
    assert "unsteady: test_it.py::test_fails_once" in said
    assert said[-1] == "2 passed, 0 failed, 0 skipped"


def test_a_fault_of_the_product_is_not_tried_again(run_job: RunJob) -> None:
    outcome = run_job(FINDS + FAILS_ONCE, JOB)[JOB]
    assert sorted(outcome.failed) == ["test_it.py::test_fails_once", "test_it.py::test_finds"]


def test_a_fixture_that_fails_after_its_test_is_a_failure(run_job: RunJob) -> None:
    assert run_job(FAILS_IN_TEARDOWN, JOB)[JOB].failed == ["test_it.py::test_passes_but_for_its_fixture"]


def test_a_test_that_ends_its_process_is_red(run_job: RunJob) -> None:
    assert not run_job(PASSES + KILLS_ITS_PROCESS, JOB)[JOB].is_good


def test_a_file_that_can_not_be_collected_is_red(run_job: RunJob) -> None:
    outcome = run_job("import no_such_module\n", JOB)[JOB]
    assert not outcome.is_good
    assert outcome.errors


def test_check_is_not_tried_again_and_nothing_runs_after_it(
    run_job: RunJob, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not run_job(FAILS_ONCE, FIRST)[FIRST].is_good
    assert "again: make check" in capsys.readouterr().out.splitlines()
    run_job(FAILS, JOB)
    assert list(jobs.run_all([FIRST, JOB], workers=1)[0]) == [FIRST]


def test_a_job_without_files_runs_nothing(run_job: RunJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "files_of", lambda job: [])
    outcome = run_job(PASSES, JOB)[JOB]
    assert outcome == Outcome(errors=["no test file belongs to it"])


def test_a_command_that_fails_is_red(run_job: RunJob) -> None:
    job = Job("some", "", (), commands=("this --version", "no_such_module"))
    outcome = run_job(PASSES, job)[job]
    assert outcome.errors == ["no_such_module"]
    assert not outcome.is_good
