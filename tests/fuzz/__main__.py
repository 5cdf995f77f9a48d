"""`python -m tests.fuzz`: all targets, or one, for some minutes; or one input again."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.fuzz.campaign import CORPUS, NO_ATHERIS, Outcome, fuzz, has_atheris
from tests.fuzz.targets import TARGETS, Target

FOUND = Path(".fuzz")
SECONDS_LEAST = 1


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--minutes", default=1.0, show_default=True, help="How long, over all targets.")
@click.option("--target", "chosen", type=click.Choice(list(TARGETS)), multiple=True, help="This one only.")
@click.option(
    "--input", "file", type=click.Path(exists=True, path_type=Path), help="Feed this file to --target, once."
)
@click.option("--processes", default=2, show_default=True, help="How many targets to run at a time.")
@click.option(
    "--found", default=FOUND, show_default=True, type=click.Path(path_type=Path), help="For failing inputs."
)
@click.option("--json", "is_json", is_flag=True, help="One JSON object at the end instead of tables.")
def main(
    minutes: float, chosen: tuple[str, ...], file: Path | None, processes: int, found: Path, is_json: bool
) -> None:
    """Feed decoders, recovery and a broker with what no client and no disk should give them.

    \b
    Examples:
      python -m tests.fuzz --minutes 20
      python -m tests.fuzz --minutes 5 --target requests --target frames
      python -m tests.fuzz --target requests --input .fuzz/requests/crash-0123
    """
    if file is not None:
        if len(chosen) != 1:
            raise click.UsageError("give the --target that the input is for")
        TARGETS[chosen[0]].load()(file.read_bytes())
        print(f"{chosen[0]} took {file} as it should")
        return
    if not has_atheris():
        raise click.ClickException(NO_ATHERIS)
    targets = [TARGETS[name] for name in chosen or TARGETS]
    console = Console(stderr=is_json)
    seconds = max(round(minutes * 60 * min(processes, len(targets)) / len(targets)), SECONDS_LEAST)
    outcomes = list(run_all(targets, seconds, processes, found.absolute(), console))
    if is_json:
        print(json.dumps([as_json(outcome) for outcome in outcomes]))
    else:
        console.print(table_of(outcomes))
        console.print(summary_of(outcomes))
    sys.exit(0 if all(outcome.is_good for outcome in outcomes) else 1)


def run_all(
    targets: list[Target], seconds: int, processes: int, found: Path, console: Console
) -> Iterator[Outcome]:
    """Run the targets, some at a time, and say at once what is found."""
    with tempfile.TemporaryDirectory() as scratch, progress_on(console) as progress:
        whole = progress.add_task("targets", total=len(targets), executions="")

        def run(target: Target) -> Outcome:
            with shown(progress, target) as advance:
                return fuzz(target, seconds, Path(scratch, target.name), found / target.name, advance)

        with ThreadPoolExecutor(processes) as pool:
            for outcome in pool.map(run, targets):
                progress.advance(whole)
                if not outcome.is_good:
                    show(console, outcome)
                yield outcome


def progress_on(console: Console) -> Progress:
    count = TextColumn("{task.fields[executions]}")
    return Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), count, console=console
    )


@contextmanager
def shown(progress: Progress, target: Target) -> Iterator[Callable[[int], None]]:
    """A line for a target while it runs."""
    task = progress.add_task(f"  {target.name}", total=None, executions="")
    yield lambda executions: progress.update(task, executions=f"{executions:,} executions")
    progress.remove_task(task)


def show(console: Console, outcome: Outcome) -> None:
    """Say what was found, and how to see it again."""
    console.print(f"[bold red]{outcome.target}[/] ended with code {outcome.exit_code}")
    console.print(outcome.log, markup=False, highlight=False)
    for path in outcome.failures:
        console.print(
            f"  again: python -m tests.fuzz --target {outcome.target} --input {path}", soft_wrap=True
        )
        console.print(f"  to keep: cp {path} {CORPUS / outcome.target}/found-...", soft_wrap=True)


def table_of(outcomes: list[Outcome]) -> Table:
    table = Table("target", "executions", "a second", "new coverage", "peak MiB", "failures")
    for column in table.columns[1:]:
        column.justify = "right"
    for outcome in outcomes:
        rate = outcome.executions / outcome.seconds
        row = (outcome.executions, round(rate), outcome.new_coverage, outcome.peak_mib, len(outcome.failures))
        table.add_row(
            outcome.target, *(f"{figure:,}" for figure in row), style="" if outcome.is_good else "red"
        )
    return table


def summary_of(outcomes: list[Outcome]) -> str:
    """What was tried and what was found, in a line."""
    executions = sum(outcome.executions for outcome in outcomes)
    bad = sum(not outcome.is_good for outcome in outcomes)
    return f"{len(outcomes)} targets, {executions:,} executions, {bad} targets failed"


def as_json(outcome: Outcome) -> dict[str, object]:
    return outcome._asdict() | {"failures": [str(path) for path in outcome.failures]}


if __name__ == "__main__":
    main()
