"""python -m bench full|quick|smoke|late|page: measure, write a result file, and make its page."""

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
from bench.late.command import late
from bench.late.results import load as load_late
from bench.machine import about
from bench.page.comparison import COLUMNS, ahead_text, comparison
from bench.page.numerals import significant
from bench.page.page import write_page
from bench.page.readme import with_tables
from bench.page.set_figures import lines, set_systems
from bench.profile import PROFILES, Profile
from bench.results import Results, load, save
from bench.run import OF_RUNNING_SYSTEMS, SYSTEMS, Run

RESULTS = Path(__file__).parent / "results"
README = Path(__file__).parent.parent / "README.md"
WIDTH_WITHOUT_TERMINAL = 160
EXIT_TERMINATED = 128 + signal.SIGTERM
COLOURS = {"faircopy": "green", "Kafka": "red", "level": "dim"}


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
    steps = [step for step in run.steps() if is_asked_for(step[0], only)]
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


def is_asked_for(step: str, only: tuple[str, ...]) -> bool:
    """Whether a step is done; the one that starts the systems is, if one of those that need them is."""
    return not only or step in only or (step == SYSTEMS and bool(OF_RUNNING_SYSTEMS & set(only)))


def show(results: Results, console: Console) -> None:
    """Print the summary: faircopy beside Kafka."""
    table = Table(*COLUMNS, box=None, header_style="bold")
    for each in comparison(results):
        cells = [each.figure, each.unit]
        for (ours, kafka), ahead in zip(each.pairs, each.ahead, strict=True):
            text = ahead_text(ahead)
            colour = COLOURS[ahead.who] if ahead is not None else "dim"
            cells += [significant(ours), significant(kafka), f"[{colour}]{text}[/]"]
        table.add_row(*cells)
    console.print(table)
    console.print()
    if names := set_systems(results):
        console.print(table_of_sets(results, names))
        console.print()
    for skipped in results.skipped:
        console.print(f"[yellow]not measured:[/] {skipped.what}: {skipped.why}", highlight=False)


def table_of_sets(results: Results, names: list[str]) -> Table:
    """Replica sets side by side."""
    table = Table("Figure", "Unit", *names, box=None, header_style="bold")
    for line in lines(results):
        table.add_row(line.figure, line.unit, *map(significant, line.values))
    return table


def console_of(is_terminal: bool) -> Console:
    """A console. Without a terminal, which has a width, tables are as wide as they need to be."""
    return Console() if is_terminal else Console(width=WIDTH_WITHOUT_TERMINAL)


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


main.add_command(late)


@main.command()
@click.argument("results", type=click.Path(path_type=Path, exists=True))
def page(results: Path) -> None:
    """Make the page of a result file again, and print its summary."""
    found = load(results)
    write_page(found, results.with_suffix(".html"))
    show(found, console_of(sys.stdout.isatty()))


@main.command()
def readme() -> None:
    """Put the figures of the committed runs into the README."""
    of_late = load_late(RESULTS / "late.json")
    README.write_text(with_tables(README.read_text(), load(RESULTS / "full.json"), of_late))


if __name__ == "__main__":
    main()
