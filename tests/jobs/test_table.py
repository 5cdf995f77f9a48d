"""Which job runs which file."""

from __future__ import annotations

from tests.jobs.table import BY_NAME, JOBS, files_of, files_with_tests, job_of


def test_each_file_runs_in_one_job() -> None:
    run = sorted(file for job in JOBS for file in files_of(job))
    assert run == files_with_tests()
    assert len(BY_NAME) == len(JOBS)


def test_the_longest_path_decides() -> None:
    job = job_of("tests/jobs/test_runs.py")
    assert job is not None
    assert not job.is_deterministic, "it starts processes"
    other = job_of("tests/jobs/test_table.py")
    assert other is not None
    assert other.is_deterministic


def test_a_file_that_no_path_contains_has_no_job() -> None:
    assert job_of("tests/unittest/test_x.py") is None
    assert job_of("tests/test_x.py") is None
