"""A Spark process that the benchmark asks to read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.spark.connector import Connector
from bench.systems.maven import java
from demo.java import java_home

SCRIPT = Path(__file__).parent / "stream.py"
ROOT = Path(__file__).parents[2]
END_SECONDS = 30.0


class SparkProcess:
    """Runs bench/spark/stream.py, which documents its commands. All its files go to `directory`."""

    def __init__(self, directory: Path, connector: Connector) -> None:
        directory.mkdir(parents=True)
        self._log_path = directory / "spark.log"
        jars = ",".join(str(jar) for jar in connector.jars)
        with self._log_path.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(SCRIPT), str(directory), jars],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=directory,
                env=environment(directory),
            )

    def ask(self, command: str, argument: Any) -> dict[str, Any]:
        """The answer to a command. Raises RuntimeError if Spark ended instead."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({command: argument}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # its log says why
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(
                f"Spark ended when asked to {command}; it logged:\n{self._log_path.read_text()}"
            )
        return dict(json.loads(line))

    def __enter__(self) -> SparkProcess:
        return self

    def __exit__(self, *_: object) -> None:
        """Let it end; its JVM ends with it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def environment(directory: Path) -> dict[str, str]:
    """This process's environment, and the variables that Spark needs. Raises Unavailable without a Java."""
    home = java_home(directory) or java().parent.parent
    return {
        **os.environ,
        "JAVA_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(ROOT),  # the script and its tasks import from bench
    }
