"""`python -m tests.crash_states`: every crash point of every short workload."""

from __future__ import annotations

import sys
import traceback
from functools import partial
from multiprocessing import Pool

import click
from rich.console import Console

from tests.crash_states.scenarios import Step, name_of, names_of, scenarios
from tests.crash_states.sweep import Bounds, Wrong, sweep
from tests.found.keeping import keep_workload
from tests.seeds import seed_for
from tests.simulation.__main__ import progress_on

SHOWN_MAX = 20
TOLD_EACH = 50


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--states", type=int, help="How many states of each crash point to try; by default all.")
@click.option("--length", default=3, show_default=True, help="Longest workload, in operations.")
@click.option("--seed", type=int, help="Chooses what to try where not everything is; random, and printed.")
@click.option("--shards", default=1, show_default=True, help="Number of shards of the broker.")
@click.option("--part", default="1/1", show_default=True, metavar="K/N", help="Only part K of N.")
@click.option("--slow", "is_slow", is_flag=True, help="The disk is slower than the network.")
@click.option("--durable", "is_durable", is_flag=True, help="With transactional.ack=durable.")
@click.option("--processes", default=2, show_default=True, help="How many workloads to try in parallel.")
def main(
    states: int | None,
    length: int,
    seed: int | None,
    shards: int,
    part: str,
    is_slow: bool,
    is_durable: bool,
    processes: int,
) -> None:
    """Crash at each I/O of short workloads, in each state that the disk may be left in; recover, and check.

    \b
    Example: python -m tests.crash_states --states 10 --length 2
    """
    console = Console()
    seed = seed if seed is not None else seed_for("crash states")
    number, parts = map(int, part.split("/"))
    wanted = [steps for steps in scenarios() if len(steps) <= length][number - 1 :: parts]
    tried, done, wrong = 0, 0, []
    bounds = Bounds(states, is_slow=is_slow, is_durable=is_durable)
    try_one = partial(outcome_of, seed=seed, bounds=bounds, shards=shards)
    with progress_on(console) as progress, Pool(processes) as pool:
        task = progress.add_task("workloads", total=len(wanted))
        for count, found in pool.imap_unordered(try_one, wanted):
            tried += count
            wrong += found
            if found:
                kept = keep_workload(names_of(found[0].scenario), seed, shards, bounds, list(map(str, found)))
                console.print(f"kept: {kept}", soft_wrap=True)
            for each in found[: max(SHOWN_MAX - len(wrong), 1)]:
                console.print(f"[bold red]wrong[/] {each}", highlight=False)
            progress.advance(task)
            done += 1
            if not console.is_terminal and done % TOLD_EACH == 0:
                console.print(
                    f"{done} of {len(wanted)} workloads, {tried:,} crash states, {len(wrong)} wrong"
                )
    console.print(
        f"{len(wanted)} workloads, {tried:,} crash states, {len(wrong)} wrong "
        f"(seed {seed}, {shards} shard(s))"
    )
    sys.exit(1 if wrong else 0)


def outcome_of(steps: tuple[Step, ...], seed: int, bounds: Bounds, shards: int) -> tuple[int, list[Wrong]]:
    """How many states were tried, and what is wrong with any. What can't be played is wrong, too: a pool may
    wait for ever for an exception that does not come through.
    """
    try:
        outcomes = list(sweep(steps, seed, bounds, shards))
    except Exception:
        return 0, [Wrong(name_of(steps), "playing it", 0, traceback.format_exc())]
    return len(outcomes), [outcome for outcome in outcomes if outcome is not None]


if __name__ == "__main__":
    main()
