"""A cluster of Spark's own: a master, and two workers of one core each that listen on two addresses.

Spark starts a speculative copy of a task only on another host than the first attempt's. Two addresses of one
machine are two hosts to it.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pyspark

from tests.broker_process import environment, eventually
from tests.spark.session import QUICK

HOSTS = ("127.0.0.1", "127.0.0.2")
SPARK_HOME = Path(pyspark.__file__).parent
DEPLOY = "org.apache.spark.deploy"
START_SECONDS = 240.0
SMALL = {"SPARK_DAEMON_JAVA_OPTS": QUICK, "SPARK_DAEMON_MEMORY": "256m", "SPARK_LAUNCHER_OPTS": QUICK}


def is_possible() -> bool:
    """Whether this machine has both addresses; macOS gives loopback only one."""
    try:
        for host in HOSTS:
            socket.create_server((host, 0)).close()
    except OSError:
        return False
    return True


@contextmanager
def cluster(directory: Path) -> Iterator[str]:
    """Yields the master's address, once both workers are there."""
    with ExitStack() as stack:
        log = directory / "master.log"
        stack.enter_context(process(log, "master.Master", "--host", HOSTS[0], "--webui-port", "0"))
        address = eventually(lambda: found(r"Starting Spark master at (spark://\S+)", log), START_SECONDS)
        for host in HOSTS:
            work = directory / f"worker-{host}"
            options = ("--host", host, "--webui-port", "0", "--cores", "1", "--work-dir", str(work), address)
            stack.enter_context(process(directory / f"worker-{host}.log", "worker.Worker", *options))
        for host in HOSTS:
            eventually(partial(found, f"(Registering worker {host})", log), START_SECONDS)
        yield address


@contextmanager
def process(log: Path, of: str, *options: str) -> Iterator[None]:
    """A process of the cluster; what it has started (executors) ends with it."""
    command = [str(SPARK_HOME / "bin" / "spark-class"), f"{DEPLOY}.{of}", "--port", "0", *options]
    with log.open("wb") as out:
        running = subprocess.Popen(
            command,
            stdout=out,
            stderr=out,
            env=environment() | SMALL | {"SPARK_HOME": str(SPARK_HOME), "SPARK_NO_DAEMONIZE": "1"},
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def found(pattern: str, log: Path) -> str:
    """What a pattern's group has matched in a log; empty if it has not."""
    match = re.search(pattern, log.read_text())
    return match[1] if match else ""
