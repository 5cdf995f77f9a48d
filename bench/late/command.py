"""`python -m bench late`: librdkafka, a network that delivers late, and what is torn, lost or repeated."""

from __future__ import annotations

import secrets
import sys
import tempfile
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from bench.fetch import fetch_all
from bench.late.results import LateResults, save
from bench.late.run import WRITERS, measure
from bench.late.systems import SYSTEMS
from bench.late.table import terminal
from bench.late.weather import CHANCES, NAMES
from bench.late.writers import ABORT_CHANCE, PARTITIONS, SETTINGS
from bench.machine import about
from bench.systems.kafka import KAFKA
from tests.soak.proxy import DELAY_SECONDS_MAX, LATE_SECONDS_MAX

RESULTS = Path(__file__).parent.parent / "results" / "late.json"


@click.command()
@click.option(
    "--seconds", type=click.FloatRange(min=1), default=180, show_default=True, help="For each system."
)
@click.option(
    "--seed", type=int, help="Chooses what comes late, and what aborts.  [default: random, and recorded]"
)
@click.option(
    "--only", multiple=True, type=click.Choice(list(SYSTEMS)), help="Only this system; can be repeated."
)
@click.option("--output", type=click.Path(path_type=Path), default=RESULTS, help="The result file.")
def late(seconds: float, seed: int | None, only: tuple[str, ...], output: Path) -> None:
    """Count the transactions that late requests break, in faircopy and in Apache Kafka.

    Eight producers (librdkafka, which speaks transactions v1) write through a proxy. It closes some
    connections with a request on them, and delivers that request later, when its client has sent it again on
    another connection, and may be in its next transaction (KAFKA-17754).
    """
    console = Console() if sys.stdout.isatty() else Console(width=120)
    names = list(only or SYSTEMS)
    for missing in fetch_all([KAFKA] if "kafka" in names else []):
        raise click.ClickException(missing)
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    rows = []
    with tempfile.TemporaryDirectory(prefix="faircopy-late-") as name:
        directory = Path(name)
        described = {**about("late", seed, directory), "load": load_in_words()}
        with progress_on(console) as progress:
            for system in names:
                task = progress.add_task(system, total=seconds, count="")
                tell = partial(show, progress, task)
                rows.append(measure(system, directory / system, seconds, seed, tell))
    results = LateResults(described, rows)
    output.parent.mkdir(parents=True, exist_ok=True)
    save(results, output)
    console.print(terminal(results))
    console.print(f"results: {output}", highlight=False)


def progress_on(console: Console) -> Progress:
    """A bar for each system."""
    columns = (
        TextColumn("{task.description:10}"), BarColumn(), TimeElapsedColumn(),
        TextColumn("{task.fields[count]}"),
    )  # fmt: skip
    return Progress(*columns, console=console)


def show(progress: Progress, task: TaskID, seconds: float, transactions: int) -> None:
    """Show how far a system has come."""
    progress.update(task, completed=seconds, count=f"{transactions:,} transactions")


def load_in_words() -> dict[str, object]:
    """What the load was, for the result file."""
    return {
        "writers": WRITERS,
        "partitions": PARTITIONS,
        "abort_chance": ABORT_CHANCE,
        "client_settings": SETTINGS,
        "chances": {
            NAMES[key]: {fate.value: chance for fate, chance in chances.items()}  # type: ignore[index]
            for key, chances in CHANCES.items()
        },
        "delayed_seconds_max": DELAY_SECONDS_MAX,
        "late_seconds_max": LATE_SECONDS_MAX,
    }
