"""etcd, built from its Go module."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from bench.systems.cache import Dependency, Unavailable, Unreachable

SOURCE = Path(__file__).parents[1] / "arbiter" / "etcd_build"
PACKAGE = "go.etcd.io/etcd/server/v3"
COMMAND = ["go", "build", "-trimpath", "-ldflags", "-s -w", PACKAGE]
BUILD_SECONDS = 900.0


def build(directory: Path) -> None:
    """Build the program into a directory. Raises Unavailable."""
    if shutil.which("go") is None:
        raise Unavailable("no go on PATH to build it")
    source = shutil.copytree(SOURCE, directory / "source")  # go may write to go.sum
    environment = os.environ | {"GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
    command = [*COMMAND[:2], "-o", str(directory / "etcd"), *COMMAND[2:]]
    try:
        run = subprocess.run(
            command, cwd=source, env=environment, capture_output=True, text=True, timeout=BUILD_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise Unreachable(f"go could not build it within {BUILD_SECONDS:.0f} s") from None
    if run.returncode:
        said = run.stderr.strip().splitlines() or ["it did not say why"]
        raise Unreachable(f"go could not build it: {said[-1]}")
    shutil.rmtree(source)


ETCD = Dependency("etcd", tuple(sorted(SOURCE.iterdir())), build, (("command", " ".join(COMMAND)),))
