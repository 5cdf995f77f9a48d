"""`python -m tests.simulation.replication`: plays many worlds of a leader and its followers."""

from __future__ import annotations

import sys
import time
from functools import partial
from multiprocessing import Pool

import click
from rich.console import Console
from rich.table import Table

from tests.seeds import seeds_for
from tests.simulation.coverage import Coverage
from tests.simulation.replication.world import ReplicaOutcome, simulate_replicas

COVERING_SEEDS = 100  # this many seeds must meet everything
TOLD_EACH = 50


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seeds", default=100, show_default=True, help="How many seeds to play.")
@click.option("--seed", type=int, help="Play this one only.")
@click.option("--machines", default=3, show_default=True, help="How many machines there are in a world.")
@click.option("--processes", default=2, show_default=True, help="How many worlds to play at a time.")
def main(seeds: int, seed: int | None, machines: int, processes: int) -> None:
    """Play a leader that ships its journals to followers, and all that befalls them, on a virtual clock.

    \b
    Examples:
      python -m tests.simulation.replication --seeds 1000
      python -m tests.simulation.replication --machines 2 --seed 42
    """
    console = Console()
    chosen = [seed] if seed is not None else seeds_for("replicas", seeds)
    coverage, failing, promised, began = Coverage(), 0, 0, time.monotonic()
    with Pool(processes) as pool:
        outcomes = pool.imap_unordered(partial(simulate_replicas, machines=machines), chosen)
        for done, outcome in enumerate(outcomes, 1):
            coverage.add(outcome.coverage)
            promised += outcome.promised
            if outcome.failures:
                failing += 1
                console.print("\n  ".join(wrong_with(outcome, machines)), markup=False)
            if done % TOLD_EACH == 0:
                console.print(f"{done} of {len(chosen)} worlds, {failing} failing")
    table = Table("met", "times")
    for name, count in sorted(coverage.counts.items()):
        table.add_row(name, str(count))
    console.print(table)
    seconds = time.monotonic() - began
    console.print(f"{len(chosen)} worlds, {failing} failing, {promised:,} bytes promised, {seconds:.0f} s")
    missed = coverage.missed if len(chosen) >= COVERING_SEEDS else []
    if missed:
        console.print(f"never met: {', '.join(missed)}")
    sys.exit(1 if failing or missed else 0)


def wrong_with(outcome: ReplicaOutcome, machines: int) -> list[str]:
    """What to print of a world that failed."""
    again = f"again: python -m tests.simulation.replication --machines {machines} --seed {outcome.seed}"
    return [f"world of seed {outcome.seed}", *outcome.failures[:20], again]


if __name__ == "__main__":
    main()
