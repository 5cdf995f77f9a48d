"""The demo passes its own checks, in small."""

from __future__ import annotations

import subprocess
import sys


def test_a_small_demo_passes() -> None:
    command = [sys.executable, "-m", "faircopy", "demo", "--flights", "20000", "--no-spark"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "half flights" in run.stdout
    assert "no:" not in run.stdout
