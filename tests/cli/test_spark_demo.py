"""The demo of Spark passes its own checks, in small."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from demo.java import java_home
from tests.requirements import missing


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_a_small_demo_of_spark_passes(tmp_path: Path) -> None:
    if not importlib.util.find_spec("pyspark") or java_home(tmp_path) is None:
        missing("there is no Spark or no Java")
    arguments = ["demo", "spark", "--flights", "5000", "--kills", "1", "--json"]
    command = [sys.executable, "-m", "faircopy", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=380)
    assert run.returncode == 0, run.stdout + run.stderr
    shown = json.loads(run.stdout)
    assert (shown["flights written back"], shown["flights written twice"]) == (5000, 0)
