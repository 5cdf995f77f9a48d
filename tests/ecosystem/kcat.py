"""Runs of kcat."""

from __future__ import annotations

import subprocess

from tests.broker_process import environment
from tests.ecosystem.packages.debian import DEBIAN, libraries
from tests.fetch.needed import needed

RUN_SECONDS = 120


def kcat(*arguments: str, given: str = "") -> str:
    """What it prints, given this. Raises AssertionError if it fails."""
    directory = needed(DEBIAN["kcat"].find)
    run = subprocess.run(
        [directory / "usr" / "bin" / "kcat", *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        env={**environment(), "LD_LIBRARY_PATH": libraries(directory)},
    )
    assert run.returncode == 0, f"kcat {' '.join(arguments)} ended with {run.returncode}:\n{run.stderr}"
    return run.stdout
