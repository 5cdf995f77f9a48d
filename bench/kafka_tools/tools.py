"""Kafka's own tools, from Maven Central by a pom of ours: run one at a time."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bench.systems.maven import jars_of, java

KAFKA_TOOLS = jars_of("kafka-tools", Path(__file__).parent / "pom.xml")
PACKAGE = "org.apache.kafka.tools"
LIBRARY = "kafka-tools-"
# The scripts that come with the tools for producing and consuming give them this much heap.
HEAP = "-Xmx512M"
SECONDS_MAX = 180.0


class Tools:
    """The tools of Kafka. Raises Unavailable unless they are fetched, or without Java."""

    def __init__(self) -> None:
        self._java = java()
        self._jars = KAFKA_TOOLS.find()

    @property
    def version(self) -> str:
        """The version of the tools and their client; perhaps older than the broker's. Raises RuntimeError."""
        for jar in self._jars.glob(f"{LIBRARY}[0-9]*.jar"):
            return jar.stem.removeprefix(LIBRARY)
        raise RuntimeError(f"there are no tools in {self._jars}: delete it, and run `make fetch`")

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
