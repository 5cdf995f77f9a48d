"""`python -m tests.models`: check the models of docs/models with TLC."""

from __future__ import annotations

import sys
import time

import click
from rich.console import Console
from rich.table import Table

from bench.systems.cache import Unavailable
from tests.fetch.tlc import TLC
from tests.models.runs import CAUGHT, HELD, SPARE, Run
from tests.models.tlc import Found, check

WHAT = {"models": HELD, "mutants": [*CAUGHT, *SPARE]}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("what", type=click.Choice([*WHAT, "all"]))
@click.option("--only", default="", help="Only runs whose name contains this.")
@click.option("--seconds", default=600.0, show_default=True, help="Longest time for one run.")
@click.option("--workers", default=2, show_default=True, help="TLC's threads.")
@click.option("--trace", is_flag=True, help="Show the shortest run that violates an invariant.")
def main(what: str, only: str, seconds: float, workers: int, trace: bool) -> None:
    """Check that the rules keep what is promised (models), and that none can be left out (mutants).

    \b
    Example: python -m tests.models mutants --only ElectInSyncOnly --trace
    """
    console = Console()
    try:
        TLC.fetch()
    except Unavailable as reason:
        raise click.ClickException(f"TLC is not available: {reason}") from None
    chosen = [run for name, runs in WHAT.items() if what in (name, "all") for run in runs if only in run.name]
    if not chosen:
        raise click.UsageError(f"no run has a name that contains {only!r}")
    table = Table("model", "run", "found", "distinct states", "steps", "seconds", "as expected")
    wrong = 0
    for run in chosen:
        began = time.monotonic()
        with console.status(f"{run.model.module}: {run.name}"):
            found = check(run.model, run.changed, seconds, workers)
        is_right = run.is_as_expected(found)
        wrong += not is_right
        taken = time.monotonic() - began
        table.add_row(*row(run, found, taken), "[green]yes[/]" if is_right else "[bold red]no[/]")
        if not console.is_terminal:
            console.print(*row(run, found, taken), sep=" | ", highlight=False, soft_wrap=True)
        if trace and found.violated:
            console.print(found.output, markup=False, highlight=False)
    if console.is_terminal:
        console.print(table)
    console.print(f"{len(chosen)} runs, {wrong} not as expected")
    sys.exit(1 if wrong else 0)


def row(run: Run, found: Found, seconds: float) -> list[str]:
    """What a table says of a run."""
    said = found.violated or ("nothing" if found.is_whole else "nothing yet: out of time")
    bounds = ", ".join(f"{name}={value}" for name, value in run.changed.items())
    steps = str(found.steps) if found.violated else ""
    return [run.model.module, f"{run.name} ({bounds})", said, f"{found.states:,}", steps, f"{seconds:.0f}"]


if __name__ == "__main__":
    main()
