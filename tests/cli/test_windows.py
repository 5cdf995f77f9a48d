"""Windows has no fcntl and no resource: the command line says so in one line."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import sys
import click
for name in ("fcntl", "resource", "uvloop"):
    sys.modules[name] = None
sys.platform = "win32"
sys.argv[0] = "faircopy"
from faircopy.cli.main import main
main()
"""


@pytest.mark.parametrize("arguments", [["start"], ["verify"], ["--help"], []])
def test_windows_gets_one_line(arguments: list[str]) -> None:
    command = [sys.executable, "-c", SCRIPT, *arguments]
    run = subprocess.run(command, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.count("\n") == 1
    assert "WSL" in run.stderr and "container" in run.stderr
