"""`python -m tests.arbiter.failover`: run it, show what it took, and say whether all was well."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from faircopy.settings.sources import load_settings
from tests.arbiter.failover.run import Result, run
from tests.seeds import seed_for

SHOWN_MAX = 20


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1), help="Each fault so often.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of the brokers; may be repeated."
)
@click.option("--seed", type=int, help="Chooses which member of etcd fails; random, and printed.")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object instead of a table.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    help="Keep logs and data here; otherwise only if all is not well.",
)
def main(rounds: int, settings: tuple[str, ...], seed: int | None, is_json: bool, keep: Path | None) -> None:
    """Kill and stop the leader of a replica set, and members of its etcd, while clients write and read.

    \b
    Examples:
      python -m tests.arbiter.failover --set arbiter.lease.ms=3000
      python -m tests.arbiter.failover --rounds 10 --json | jq .rows
    """
    console = Console(stderr=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so all that runs is ended
    seed = seed if seed is not None else seed_for("failover")
    lease_seconds = load_settings(None, {}, settings).arbiter_lease_ms / 1000
    directory = keep or Path(tempfile.mkdtemp(prefix="faircopy-failover-"))
    directory.mkdir(parents=True, exist_ok=True)
    try:
        result = run(directory, rounds, settings, lease_seconds, seed, console.print)
    except BaseException:
        console.print(f"logs and data are in {directory}", soft_wrap=True)
        raise
    if is_json:
        print(json.dumps(asdict(result) | {"lease_seconds": lease_seconds, "seed": seed}))
    else:
        show(Console(), result, lease_seconds)
    if keep or result.wrong:
        console.print(f"logs and data are in {directory}", soft_wrap=True)
    else:
        shutil.rmtree(directory)
    sys.exit(1 if result.wrong else 0)


def show(console: Console, result: Result, lease_seconds: float) -> None:
    """A table, and the verdict."""
    title = f"seconds without an ack (median, longest), with a lease of {lease_seconds:g} s"
    table = Table(title=title, box=None, padding=(0, 1, 0, 0))
    for name in ("fault", "rounds", "transactions", "messages", "lives", "aborted", "unknown"):
        table.add_column(name, justify="left" if name == "fault" else "right", no_wrap=True)
    for row in result.rows:
        pauses = [f"{each[0]:.2f} {each[1]:5.2f}" for each in (row.transactions_paused, row.messages_paused)]
        table.add_row(
            row.fault, str(row.rounds), *pauses, str(row.new_lives), str(row.aborted), str(row.unknown)
        )
    console.print(table)
    acked = ", ".join(f"{count:,} {kind}" for kind, count in result.acked.items())
    console.print(f"acknowledged: {acked}; {len(result.epochs)} lives")
    for reason in result.reasons[:SHOWN_MAX]:
        console.print(f"  {reason}", markup=False)
    for each in result.wrong[:SHOWN_MAX]:
        console.print(f"  {each}", markup=False, style="red")
    console.print(f"{len(result.wrong)} wrong" if result.wrong else "all is well", style="bold")


if __name__ == "__main__":
    main()
