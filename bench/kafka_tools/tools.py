"""Kafka's own tools: fetched from Maven Central by a pom of ours, and run one at a time."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bench.systems.maven import CACHE, fetch_jars, java

POM = Path(__file__).parent / "pom.xml"
PACKAGE = "org.apache.kafka.tools"
LIBRARY = "kafka-tools-"
# The scripts that come with the tools for producing and consuming give them this much heap.
HEAP = "-Xmx512M"
SECONDS_MAX = 180.0


class Tools:
    """The newest published tools of Kafka 4. Raises Unavailable if the tools or a Java are not available."""

    def __init__(self) -> None:
        self._java = java()
        self._jars = fetch_jars(POM, CACHE / "kafka-tools")

    @property
    def version(self) -> str:
        """The version of the tools and their client; perhaps older than the broker's. Raises RuntimeError."""
        for jar in self._jars.glob(f"{LIBRARY}[0-9]*.jar"):
            return jar.stem.removeprefix(LIBRARY)
        raise RuntimeError(f"there are no tools in {self._jars}: delete it, and they are fetched again")

    def run(self, tool: str, *arguments: str) -> str:
        """The output of a tool. Raises RuntimeError if it fails, or does not end in time."""
        command = [str(self._java), HEAP, "-cp", f"{self._jars}/*", f"{PACKAGE}.{tool}", *arguments]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{tool} did not end within {SECONDS_MAX:.0f} s") from None
        if run.returncode:
            raise RuntimeError(f"{tool} ended with {run.returncode}; it said:\n{run.stdout}{run.stderr}")
        return run.stdout
