"""The demo passes its own checks, in small."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from tests.broker_process import eventually


@pytest.mark.timeout(300)
def test_a_small_demo_passes() -> None:
    command = [sys.executable, "-m", "faircopy", "demo", "--flights", "20000", "--no-spark"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "half flights" in run.stdout
    assert "no:" not in run.stdout


@pytest.fixture
def _interrupts_are_heard() -> Iterator[None]:
    """Tests that a shell runs in the background would hand on that SIGINT is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interrupts_are_heard")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_demo_that_is_ended_ends_all_that_it_has_started(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "faircopy", "demo", "--no-spark"]
    with psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        eventually(lambda: len(run.children(recursive=True)) >= 3)
        started = run.children(recursive=True)
        run.send_signal(number)
        assert run.wait(120) != 0
    assert psutil.wait_procs(started, 60)[1] == []
