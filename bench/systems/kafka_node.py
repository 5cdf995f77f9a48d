"""A node of Apache Kafka, run like its own start script does, with the properties that it is given."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bench.systems.maven import java

LOGGING = Path(__file__).parent / "kafka" / "log4j2.properties"
CLUSTER = "ZmFpcmNvcHktLWJlbmNoLQ"  # any 16 bytes
READY_SECONDS = 60.0
STOP_SECONDS = 30.0

# kafka-server-start.sh and kafka-run-class.sh run a broker with these, if the environment says nothing else.
HEAP = ("-Xmx1G", "-Xms1G")
OPTIONS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)


class KafkaNode:
    """One process and its directory, which is formatted at once if it is new. Raises RuntimeError."""

    def __init__(
        self, directory: Path, jars: Path, properties: Mapping[str, object], heap: tuple[str, ...] = HEAP
    ) -> None:
        self.data_directory = directory / "data"
        self._jars = jars
        self._heap = heap
        self._log_path = directory / "broker.log"
        self._properties_path = directory / "server.properties"
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)
        written = {**properties, "log.dirs": self.data_directory}
        self._properties_path.write_text("".join(f"{name}={value}\n" for name, value in written.items()))
        self._format()

    def _format(self) -> None:
        """Give a new directory its identity. This belongs to installing Kafka, so no start includes it."""
        if (self.data_directory / "meta.properties").exists():
            return
        run = self._run("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(self._properties_path))
        if run.wait(READY_SECONDS):
            raise RuntimeError(f"Kafka could not format its directory; it logged:\n{self.log}")

    def _run(self, main_class: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(java()), *self._heap, *OPTIONS, f"-Dlog4j2.configurationFile={LOGGING}"]
        command += ["-cp", f"{self._jars}/*", main_class, *arguments]
        with self._log_path.open("a") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """Its log over all its starts."""
        return self._log_path.read_text()

    def begin(self) -> None:
        """Start it. `wait_until_served` returns when it serves clients."""
        self._process = self._run("kafka.Kafka", str(self._properties_path))

    def ensure_running(self) -> None:
        """Raise RuntimeError if it has ended."""
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError(f"Kafka ended at its start; it logged:\n{self.log}")

    def end(self, number: signal.Signals) -> None:
        """Send a signal that ends it, and wait for that."""
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def start(address: str, nodes: Sequence[KafkaNode]) -> None:
    """Start nodes together, and return when a client at `address` hears of all of them as brokers. Raises
    RuntimeError, and leaves none running.
    """
    try:
        for node in nodes:
            node.begin()
        wait_until_served(address, nodes)
    except BaseException:
        for node in nodes:
            node.end(signal.SIGKILL)
        raise


def wait_until_served(address: str, nodes: Sequence[KafkaNode]) -> None:
    """Return when a request for metadata is answered that names all nodes. Raises RuntimeError."""
    client = AdminClient(
        {
            "bootstrap.servers": address,
            "log_level": 0,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 50,
        }
    )
    seconds_max = READY_SECONDS * len(nodes)
    deadline = time.monotonic() + seconds_max
    while brokers_heard_of(client) < len(nodes):
        for node in nodes:
            node.ensure_running()
        if time.monotonic() > deadline:
            logs = "\n".join(node.log for node in nodes)
            raise RuntimeError(f"Kafka was not ready within {seconds_max:.0f} s; it logged:\n{logs}")


def brokers_heard_of(client: AdminClient) -> int:
    """How many brokers an answer names that comes within half a second."""
    try:
        return len(client.list_topics(timeout=0.5).brokers)
    except KafkaException:
        return 0
