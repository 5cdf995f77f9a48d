"""A program in Go with franz-go, built from its Go module."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from bench.systems.cache import Dependency, Unavailable, Unreachable

SOURCE = Path(__file__).parents[1] / "errors" / "go"
PROGRAM = "application"
COMMAND = ["go", "build", "-trimpath", "-o", PROGRAM, "."]
BUILD_SECONDS = 600.0


def build(directory: Path) -> None:
    """Build the program into a directory. Raises Unavailable."""
    if shutil.which("go") is None:
        raise Unavailable("no go on PATH to build it")
    shutil.copytree(SOURCE, directory, dirs_exist_ok=True)
    environment = os.environ | {"GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
    try:
        run = subprocess.run(
            COMMAND, cwd=directory, env=environment, capture_output=True, text=True, timeout=BUILD_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise Unreachable(f"go could not build it within {BUILD_SECONDS:.0f} s") from None
    if run.returncode:
        said = run.stderr.strip().splitlines() or ["it did not say why"]
        raise Unreachable(f"go could not build it: {said[-1]}")


FRANZ_GO = Dependency("franz-go", tuple(sorted(SOURCE.iterdir())), build, (("command", " ".join(COMMAND)),))
