"""A session of Spark for tests: small, on loopback only, and quick to start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
HERE = "local[2,4]"  # tasks have four attempts, as elsewhere
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # what lives a few minutes is not worth compiling well
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
    "spark.executorEnv.PYTHONPATH": str(ROOT),
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stopTimeout": "120s",
}


def start_session(master: str = HERE, settings: Mapping[str, str] = SETTINGS) -> SparkSession:
    """The session of this process. `master` is Spark's: its own threads, or a cluster."""
    from pyspark.sql import SparkSession

    started: SparkSession = SparkSession.builder.master(master).config(map=dict(settings)).getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    return started


def drop_interrupted_call(session: SparkSession) -> None:
    """Forget a call to the JVM that a time limit has interrupted. Otherwise this thread's next call would get
    its answer, once it comes, or wait for it for ever.
    """
    gateway = session.sparkContext._gateway
    assert gateway is not None
    client = gateway._gateway_client
    connection = client.get_thread_connection()
    if connection is not None and connection not in client.deque:  # where those wait that are not in use
        connection.close()
