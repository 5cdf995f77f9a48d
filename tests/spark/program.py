"""The query of tests/spark/query.py as a program of its own, so that tests can kill its driver.

    python -m tests.spark.program ADDRESS DIRECTORY WHAT MASTER

WHAT is that of `start_query`. MASTER is Spark's: its own threads, or a cluster, where a task that takes long
gets a second attempt beside the first.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.broker_process import BrokerProcess, environment
from tests.spark.session import HERE, ROOT, SETTINGS, start_session

RUN_SECONDS = 240.0
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.task.duration.threshold": "1s",
}


def start(
    broker: BrokerProcess, directory: Path, what: str = "plain", master: str = HERE
) -> subprocess.Popen[bytes]:
    """Start the program; what Spark says goes to `spark.log` in its directory."""
    with (directory / "spark.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.spark.program", broker.address, str(directory), what, master],
            env=environment() | {"PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a driver and all that it has started; it may have ended just now."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def driver(
    broker: BrokerProcess, directory: Path, what: str = "plain", master: str = HERE
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that is killed at the end, unless it has ended."""
    process = start(broker, directory, what, master)
    try:
        yield process
    finally:
        if process.poll() is None:
            kill(process)


def has_ended(process: subprocess.Popen[bytes], directory: Path) -> bool:
    """Whether a program has ended, which it may only do when it has done its work."""
    assert not process.poll(), (directory / "spark.log").read_text()[-4000:]
    return process.returncode is not None


def run(broker: BrokerProcess, directory: Path, what: str = "plain", master: str = HERE) -> None:
    """Run the program to its end."""
    with driver(broker, directory, what, master) as process:
        process.wait(RUN_SECONDS)
        assert has_ended(process, directory)


def main(address: str, directory: Path, what: str, master: str) -> None:
    """Run the query until all files are written."""
    from tests.spark.query import start_query

    os.environ["PYSPARK_PYTHON"] = sys.executable
    scratch = {"spark.local.dir": str(directory / "scratch")}  # a driver that is killed can't remove it
    spark = start_session(master, SETTINGS | SPECULATION | scratch)
    start_query(spark, address, directory, what).awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
