"""The jobs, and which test files belong to each.

A path is a file or a folder. The longest path that contains a test file decides which job runs it, so a
folder belongs to one job and a file in it may belong to another.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Job:
    """A list of tests that one run of pytest executes.

    `paths` are relative to the root of the checkout. A *deterministic* job starts no process and waits for no
    clock, so it runs under the guard of `tests/deterministic.py` and its failures are never tried again.
    `commands` are modules of Python, with their arguments, that must succeed as well.
    `workers` and `distribution` are pytest-xdist's: how many processes, and who of them gets which test.
    """

    name: str
    about: str
    paths: tuple[str, ...]
    workers: int = 3
    distribution: str = "worksteal"
    is_deterministic: bool = False
    commands: tuple[str, ...] = ()
    is_in_gate: bool = True


CHECK = Job(
    "check",
    "all that is deterministic: units, scenarios, scenes, crash states, mutants, kept inputs",
    ("tests/unit", "tests/test_layout.py", "tests/jobs"),
    workers=2,
    is_deterministic=True,
    commands=("ruff check .", "ruff format --check .", "codespell", "mypy"),
)
JOBS = (CHECK,)
BY_NAME = {job.name: job for job in JOBS}


def files_with_tests() -> list[str]:
    """All test files of the checkout, as paths relative to its root."""
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))


def job_of(file: str) -> Job | None:
    """The job that runs this test file, or None if no job does."""
    found = [(len(path), job) for job in JOBS for path in job.paths if is_in(file, path)]
    return max(found, key=lambda each: each[0])[1] if found else None


def is_in(file: str, path: str) -> bool:
    """Whether a path is this file or a folder that contains it."""
    return file == path or file.startswith(f"{path}/")


def files_of(job: Job) -> list[str]:
    """The test files that a job runs, in alphabetical order."""
    return [file for file in files_with_tests() if job_of(file) == job]
