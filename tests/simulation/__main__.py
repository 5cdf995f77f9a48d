"""`python -m tests.simulation`: runs many seeds, and prints what is wrong with each failing one."""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from multiprocessing import Pool
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tests.checker.history import write_history
from tests.found.keeping import keep_seed
from tests.seeds import seeds_for
from tests.simulation.coverage import Coverage
from tests.simulation.parts import wrong_with
from tests.simulation.run import simulate
from tests.simulation.several import simulate_several
from tests.simulation.society import WorldOutcome

TOLD_EACH = 50  # where there is no terminal to show progress on
COVERING_SEEDS = 200  # this many seeds must meet everything


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seeds", default=100, show_default=True, help="How many seeds to run.")
@click.option("--seed", type=int, help="Run this one only, and write its history.")
@click.option("--arbiter", "has_arbiter", is_flag=True, help="The broker is a replica set of one.")
@click.option("--machines", default=1, show_default=True, help="How many machines there are in a world.")
@click.option("--processes", default=2, show_default=True, help="How many seeds to run at a time.")
@click.option("--history", type=click.Path(path_type=Path), help="Where to write the history of --seed.")
@click.option("--json", "is_json", is_flag=True, help="One JSON object at the end instead of tables.")
def main(
    seeds: int,
    seed: int | None,
    has_arbiter: bool,
    machines: int,
    processes: int,
    history: Path | None,
    is_json: bool,
) -> None:
    """Run brokers, clients and faults on a virtual clock, and check what clients saw.

    With several machines, a third of the worlds are a replica set each: a leader with clients, and followers.
    Another third have faults in common. In the others each machine must have the history that it has alone.

    \b
    Examples:
      python -m tests.simulation --seeds 1000
      python -m tests.simulation --arbiter --seeds 1000
      python -m tests.simulation --machines 3 --seeds 200
      python -m tests.simulation --seed 42 --history /tmp/history.jsonl
    """
    console = Console(stderr=is_json)
    chosen = [seed] if seed is not None else seeds_for("simulation", seeds)
    began = time.monotonic()
    coverage, failing, virtual_seconds = Coverage(), [], 0.0
    with progress_on(console) as progress, Pool(processes) as pool:
        task = progress.add_task("seeds", total=len(chosen))
        for done, outcome in enumerate(
            pool.imap_unordered(partial(world_of, machines=machines, has_arbiter=has_arbiter), chosen), 1
        ):
            coverage.add(outcome.coverage)
            virtual_seconds += outcome.virtual_seconds
            if not outcome.is_good:
                failing.append(outcome)
                show(console, outcome)
            progress.advance(task)
            if not console.is_terminal and done % TOLD_EACH == 0:
                console.print(f"{done} of {len(chosen)} seeds, {len(failing)} failing")
            if seed is not None and history is not None:
                write_histories(outcome, history)
    seconds = time.monotonic() - began
    missed = coverage.missed if len(chosen) * machines >= COVERING_SEEDS else []
    if is_json:
        found = {
            "seeds": len(chosen),
            "failing": [each.seed for each in failing],
            "missed": missed,
            "coverage": dict(coverage.counts),
        }
        print(json.dumps(found | {"virtual_seconds": virtual_seconds, "seconds": seconds}))
    else:
        console.print(table_of(coverage))
        console.print(
            f"{len(chosen)} seeds, {len(failing)} failing; "
            f"{virtual_seconds:,.0f} virtual seconds in {seconds:,.1f}"
        )
        for name in missed:
            console.print(f"[bold red]never met[/]: {name}")
    sys.exit(1 if failing or missed else 0)


def progress_on(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    )


def world_of(seed: int, *, machines: int, has_arbiter: bool) -> WorldOutcome:
    """What came of a seed."""
    if machines > 1:
        return simulate_several(seed, machines, has_arbiter=has_arbiter)
    outcome = simulate(seed, has_arbiter=has_arbiter)
    return WorldOutcome(seed, [outcome], [], outcome.coverage)


def write_histories(world: WorldOutcome, path: Path) -> None:
    """Write a file for each machine; the first gets this name."""
    for number, outcome in enumerate(world.machines):
        with (path if not number else path.with_stem(f"{path.stem}-{number + 1}")).open("w") as file:
            write_history(outcome.history, file)


def show(console: Console, world: WorldOutcome) -> None:
    """Print what is wrong with a seed, and how to reproduce it; keep it for the tests."""
    machines, has_arbiter = len(world.machines), world.machines[0].has_arbiter
    said = world.wrong if machines > 1 else wrong_with(world.machines[0])
    kept = keep_seed(world.seed, said, has_arbiter=has_arbiter, machines=machines)
    for line in [*said, f"  kept: {kept}"]:
        console.print(line, markup=False, soft_wrap=True)


def table_of(coverage: Coverage) -> Table:
    table = Table("what was met", "times", title="coverage")
    for name, count in sorted(coverage.counts.items()):
        table.add_row(name, f"{count:,}", style="red" if not count else "")
    return table


if __name__ == "__main__":
    main()
