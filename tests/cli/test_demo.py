"""The demo passes its own checks, in small."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from faircopy.cli.demo.java import java_home
from tests.broker_process import eventually


def test_a_small_demo_passes() -> None:
    command = [sys.executable, "-m", "faircopy", "demo", "--flights", "20000", "--no-spark"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "half flights" in run.stdout
    assert "no:" not in run.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_demo_that_is_ended_ends_all_that_it_has_started(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "faircopy", "demo", "--no-spark"]
    with psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        eventually(lambda: len(run.children(recursive=True)) >= 3)
        started = run.children(recursive=True)
        run.send_signal(number)
        assert run.wait(60) != 0
    assert psutil.wait_procs(started, 10)[1] == []


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_a_small_demo_of_spark_passes(tmp_path: Path) -> None:
    if not importlib.util.find_spec("pyspark") or java_home(tmp_path) is None:
        if os.environ.get("FAIRCOPY_REQUIRE_ALL") == "1":
            pytest.fail("there is no Spark or no Java (and FAIRCOPY_REQUIRE_ALL=1)", pytrace=False)
        pytest.skip("there is no Spark or no Java")
    command = [
        sys.executable,
        "-m",
        "faircopy",
        "demo",
        "spark",
        "--flights",
        "5000",
        "--kills",
        "1",
        "--json",
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=380)
    assert run.returncode == 0, run.stdout + run.stderr
    shown = json.loads(run.stdout)
    assert (shown["flights written back"], shown["flights written twice"]) == (5000, 0)
