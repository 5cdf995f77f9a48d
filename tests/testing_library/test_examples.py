"""The examples in docs/TESTING.md do what the page says, run as a reader would run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.testing_library.guide import blocks, of_pytest, of_unittest
from tests.testing_library.plugin import arguments

SECONDS = 120


def run(directory: Path, *command: str) -> str:
    """Run a command in a directory of its own; it must succeed. Returns its output."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=SECONDS,
        env=os.environ | {"PATH": path}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_examples_for_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_loader.py").write_text(of_pytest())
    tests = len(re.findall("^def test_", of_pytest(), re.MULTILINE))
    output = run(
        tmp_path, sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *arguments()
    )
    (passed,) = re.findall(r"(\d+) passed", output)
    assert int(passed) >= tests > 10


def test_the_example_for_unittest(tmp_path: Path) -> None:
    (tmp_path / "test_loader.py").write_text(of_unittest())
    assert "OK" in run(tmp_path, sys.executable, "-m", "unittest", "test_loader")


def test_the_example_for_any_language(tmp_path: Path) -> None:
    (shell,) = blocks("sh")
    asked = len(re.findall("^ask '", shell, re.MULTILINE))
    answers = run(tmp_path, "bash", "-c", shell).splitlines()
    assert [line for line in answers if line.startswith('{"answer"')] == answers[:asked]
    assert len(answers[:asked]) == asked
