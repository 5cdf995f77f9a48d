"""python -m bench full|quick|smoke|page: measure, write a result file, and make its page."""

from __future__ import annotations

import logging
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console
from rich.logging import RichHandler
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.fetch import fetch_for
from bench.machine import about
from bench.page.limits import limits
from bench.page.page import write_page
from bench.page.readme import with_table
from bench.page.targets import targets
from bench.profile import PROFILES, Profile
from bench.results import Results, load, save
from bench.run import Run

RESULTS = Path(__file__).parent / "results"
README = Path(__file__).parent.parent / "README.md"
WIDTH_WITHOUT_TERMINAL = 160
EXIT_TERMINATED = 128 + signal.SIGTERM
COLOURS = {"met": "green", "missed": "red", "not measured": "dim"}


@click.group()
def main() -> None:
    """Commit protocols side by side, and faircopy beside Apache Kafka, in one run."""
    # Ending the benchmark also ends its brokers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))


def measured(
    profile: Profile, only: tuple[str, ...], seed: int | None, output: Path, data: Path | None
) -> None:
    """Run a profile, write the results and the page, and print the summary."""
    console = console_of(sys.stdout.isatty())
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    output.mkdir(parents=True, exist_ok=True)
    for missing in fetch_for(profile, only):
        console.print(f"[yellow]cannot be had:[/] {missing}", highlight=False)
    path = output / f"{'-'.join([profile.name, *only])}.json"
    with tempfile.TemporaryDirectory(prefix="faircopy-bench-", dir=data) as name:
        results = Results(about(profile.name, seed, Path(name)))
        # A run is long: its results are kept after each step, whatever happens later.
        has_failed = run(Run(profile, results, Path(name), seed), only, console, lambda: save(results, path))
    page = path.with_suffix(".html")
    write_page(load(path), page)
    show(results, console)
    console.print(f"results: {path}\npage:    {page}", highlight=False)
    if has_failed:
        sys.exit(1)


def run(run: Run, only: tuple[str, ...], console: Console, keep: Callable[[], None]) -> bool:
    """All steps, with a bar, and `keep` after each; true if one failed."""
    columns = (
        TextColumn("{task.description:10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.fields[doing]}"),
    )  # fmt: skip
    logging.basicConfig(level=logging.ERROR, handlers=[RichHandler(console=console)], format="%(message)s")
    steps = [step for step in run.steps() if not only or step[0] in (*only, "systems")]
    began = time.monotonic()
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(steps), doing="")
        try:
            for name, step in steps:
                progress.update(task, description=name, doing="")
                run.do(name, step, lambda doing: progress.update(task, doing=doing))
                run.results.about["seconds"] = time.monotonic() - began
                keep()
                progress.advance(task)
        finally:
            run.stop()
        progress.update(task, description="done", doing="")
    return run.has_failed


def show(results: Results, console: Console) -> None:
    """Print the summary: faircopy compared with this machine's floors, and with Kafka."""
    floors = Table(
        "faircopy beside this machine", "measured", "ratio", "to", "aim", "", box=None, header_style="bold"
    )
    for limit in limits(results):
        ratio = f"{limit.ratio:.2f}" if limit.ratio is not None else ""
        verdict = verdict_text("met" if limit.is_met else "missed")
        floors.add_row(
            limit.figure, f"{limit.measured:.3g} {limit.unit}", ratio, limit.floor, limit.aim, verdict
        )
    kafka = Table(
        "faircopy beside Apache Kafka",
        "",
        "ours",
        "Kafka",
        "floor",
        "ratio",
        "aim",
        "",
        box=None,
        header_style="bold",
    )
    for target in targets(results):
        values = (target.ours, target.kafka, target.floor, target.ratio)
        figures = [f"{value:.3g}" if value is not None else "-" for value in values]
        verdict = verdict_text(target.verdict)
        kafka.add_row(f"{target.figure}, {target.unit}", target.durability, *figures, target.aim, verdict)
    for table in (floors, kafka):
        console.print(table)
        console.print()
    for skipped in results.skipped:
        console.print(f"[yellow]not measured:[/] {skipped.what}: {skipped.why}", highlight=False)


def console_of(is_terminal: bool) -> Console:
    """A console. Without a terminal, which has a width, tables are as wide as they need to be."""
    return Console() if is_terminal else Console(width=WIDTH_WITHOUT_TERMINAL)


def verdict_text(verdict: str) -> str:
    """A verdict, coloured for the terminal."""
    return f"[{COLOURS[verdict]}]{verdict}[/]"


OPTIONS = [
    click.option(
        "--only", multiple=True, metavar="STEP", help="Only this step, such as latency; can be repeated."
    ),
    click.option(
        "--seed", type=int, help="Chooses the transactions that abort.  [default: random, and recorded]"
    ),
    click.option(
        "--output",
        type=click.Path(path_type=Path),
        default=RESULTS,
        help="The directory for results and page.",
    ),
    click.option(
        "--data",
        type=click.Path(path_type=Path, exists=True),
        help="The directory where brokers keep their data.",
    ),
]


def with_options(command: click.decorators.FC) -> click.decorators.FC:
    """A command with the options that all measuring commands have."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@main.command()
@with_options
def full(only: tuple[str, ...], seed: int | None, output: Path, data: Path | None) -> None:
    """Everything. It takes long."""
    measured(PROFILES["full"], only, seed, output, data)


@main.command()
@with_options
def quick(only: tuple[str, ...], seed: int | None, output: Path, data: Path | None) -> None:
    """The main figures, in less than three minutes."""
    measured(PROFILES["quick"], only, seed, output, data)


@main.command()
@with_options
def smoke(only: tuple[str, ...], seed: int | None, output: Path, data: Path | None) -> None:
    """As little as possible of everything, to see that it works: its figures mean nothing."""
    measured(PROFILES["smoke"], only, seed, output, data)


@main.command()
@click.argument("results", type=click.Path(path_type=Path, exists=True))
def page(results: Path) -> None:
    """Make the page of a result file again, and print its summary."""
    found = load(results)
    write_page(found, results.with_suffix(".html"))
    show(found, console_of(sys.stdout.isatty()))


@main.command()
def readme() -> None:
    """Put the figures of the committed run into the README."""
    README.write_text(with_table(README.read_text(), load(RESULTS / "full.json")))


if __name__ == "__main__":
    main()
