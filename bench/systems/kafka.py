"""Apache Kafka: one node, run like its own start script does, with its own defaults.

Only these settings differ from the defaults: those that a single node needs (KRaft with itself as quorum,
internal topics with one replica), listening on loopback only, and the settings of the caller.
"""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bench.results import System
from bench.systems.maven import jars_of, java
from bench.systems.ports import HeldPorts

HERE = Path(__file__).parent / "kafka"
KAFKA = jars_of("kafka", HERE / "pom.xml")
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

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data_directory}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""

# Settings whose names differ between a topic and a broker (where they apply to all topics).
OF_ALL_TOPICS = {"flush.messages": "log.flush.interval.messages", "flush.ms": "log.flush.interval.ms"}


def find_kafka() -> Path:
    """The directory with Kafka's jars. Raises Unavailable if nobody has fetched them, or without a Java."""
    java()
    return KAFKA.find()


class Kafka:
    """A broker of Apache Kafka. Settings are NAME=VALUE, with the names of broker settings or of topic
    settings.

    With "flush.messages=1" it forces each batch to disk before the ack, and is called "kafka fsync"; by
    default it leaves that to the operating system. Raises Unavailable if Kafka is not available.
    """

    def __init__(self, directory: Path, *settings: str) -> None:
        self.data_directory = directory / "data"
        self._jars = find_kafka()
        self._ports = HeldPorts(2)  # for as long as this object lives, also while the broker is down
        self._port, self._controller_port = self._ports.numbers
        self._log_path = directory / "broker.log"
        self._properties_path = directory / "server.properties"
        self._process: subprocess.Popen[bytes] | None = None
        chosen = dict(setting.split("=", 1) for setting in settings)
        is_forced = chosen.get("flush.messages") == "1"
        self.about = System(
            "kafka fsync" if is_forced else "kafka",
            "kafka",
            version_of(self._jars),
            "markers",
            "fsync" if is_forced else "os",
            chosen,
        )
        directory.mkdir(parents=True, exist_ok=True)
        self._properties_path.write_text(self._properties())
        self._format()

    def _properties(self) -> str:
        chosen = {OF_ALL_TOPICS.get(name, name): value for name, value in self.about.settings.items()}
        return PROPERTIES.format(
            port=self._port, controller_port=self._controller_port, data_directory=self.data_directory
        ) + "".join(f"{name}={value}\n" for name, value in chosen.items())

    def _format(self) -> None:
        """Give a new directory its identity. This belongs to installing Kafka, so no start includes it."""
        if (self.data_directory / "meta.properties").exists():
            return
        run = self._run("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(self._properties_path))
        if run.wait(READY_SECONDS):
            raise RuntimeError(f"Kafka could not format its directory; it logged:\n{self.log}")

    def _run(self, main_class: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(java()), *HEAP, *OPTIONS, f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}"]
        command += ["-cp", f"{self._jars}/*", main_class, *arguments]
        with self._log_path.open("a") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def log_directories(self, topic: str) -> list[Path]:
        return sorted(self.data_directory.glob(f"{topic}-[0-9]*"))

    def topic_directories(self, topic: str) -> list[Path]:
        return self.log_directories(topic)

    @property
    def log(self) -> str:
        """The broker's log over all its starts."""
        return self._log_path.read_text()

    def start(self) -> None:
        """Start it, and return when it has answered a client's request for metadata. Raises RuntimeError."""
        self._process = self._run("kafka.Kafka", str(self._properties_path))
        try:
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        client = AdminClient(
            {
                "bootstrap.servers": self.address,
                "log_level": 0,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 50,
            }
        )
        deadline = time.monotonic() + READY_SECONDS
        while not is_served(client):
            if self._process.poll() is not None:
                raise RuntimeError(f"Kafka ended at its start; it logged:\n{self.log}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"Kafka served nobody within {READY_SECONDS} s; it logged:\n{self.log}")

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def is_served(client: AdminClient) -> bool:
    """Whether the broker answers within half a second."""
    try:
        return bool(client.list_topics(timeout=0.5).brokers)
    except KafkaException:
        return False


def version_of(jars: Path) -> str:
    """The version of Kafka among its jars, by the name of the broker's own. Raises RuntimeError."""
    for jar in jars.glob("kafka_2.13-*.jar"):
        return jar.stem.removeprefix("kafka_2.13-")
    raise RuntimeError(f"there is no Kafka in {jars}: delete it, and run `make fetch`")
