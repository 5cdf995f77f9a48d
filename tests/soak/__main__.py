"""`python -m tests.soak`: one soak, its progress, and the checker's verdict."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import uvloop
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tests.seeds import seed_for
from tests.soak.faults import KILL
from tests.soak.soak import Outcome, Soak

FINDINGS_SHOWN = 20
REFRESH_SECONDS = 0.5
INTERRUPTED = 130


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--minutes",
    default=1.0,
    show_default=True,
    help="How long things go wrong, at least until each has; healing takes a bit more.",
)
@click.option("--seed", type=int, help="Chooses what goes wrong, and in which order; random, and printed.")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object at the end instead of tables.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    help="Keep histories, logs and data here; otherwise only if something is wrong.",
)
@click.option("--mutant", hidden=True, help="Break a rule of the broker: one of tests/mutants.")
def main(minutes: float, seed: int | None, is_json: bool, keep: Path | None, mutant: str | None) -> None:
    """Run a broker under three client libraries, kill, stop and starve it, and check what the clients saw.

    \b
    Examples:
      python -m tests.soak --minutes 25
      python -m tests.soak --minutes 2 --keep /tmp/soak
    """
    console = Console(stderr=is_json)
    seed = seed if seed is not None else seed_for("soak")
    directory = keep or Path(tempfile.mkdtemp(prefix="faircopy-soak-"))
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise click.UsageError(f"{directory} is not empty: give --keep a new directory")
    soak = Soak(directory, seed, mutant)
    try:
        uvloop.run(watched(soak, minutes * 60, console))
    except (asyncio.CancelledError, KeyboardInterrupt):
        console.print(f"stopped; histories, logs and data are in {directory}")
        sys.exit(INTERRUPTED)
    outcome = soak.outcome
    if is_json:
        print(json.dumps(summary_of(outcome)))
    else:
        show(console, outcome)
    if outcome.is_good and not keep:
        shutil.rmtree(directory)
    else:
        console.print(f"histories, logs and data are in {directory}")
    sys.exit(0 if outcome.is_good else 1)


async def watched(soak: Soak, seconds: float, console: Console) -> None:
    """Run a soak, and show its progress. SIGTERM ends it as Ctrl-C does."""
    running = asyncio.ensure_future(soak.run(seconds))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(),
        TextColumn("{task.fields[counts]}"), console=console,
    ) as progress:  # fmt: skip
        task = progress.add_task("starting", total=seconds, counts="")
        while not running.done():
            await asyncio.wait([running], timeout=REFRESH_SECONDS)
            outcome = soak.outcome
            progress.update(
                task,
                description=outcome.phase,
                completed=outcome.seconds,
                counts=", ".join(counts_of(outcome)),
            )
    await running


def counts_of(outcome: Outcome) -> Iterator[str]:
    """The counts that are shown while it runs."""
    yield f"{outcome.coverage.counts[KILL]:,} kills"
    yield f"{sum(outcome.coverage.counts.values()):,} faults"
    for name in ("ok", "failed", "unknown"):
        yield f"{outcome.ended[name]:,} {name}"


def summary_of(outcome: Outcome) -> dict[str, Any]:
    """The whole outcome, for programs."""
    checked = outcome.checked
    return {
        "seed": outcome.seed,
        "seconds": outcome.seconds,
        "kills": outcome.coverage.counts[KILL],
        "faults": dict(outcome.coverage.counts),
        "transactions": {name: outcome.ended[name] for name in ("ok", "failed", "unknown")},
        "plain": outcome.ended["plain"],
        "messages": outcome.messages,
        "verdict": checked.verdict.value if checked else None,
        "findings": [str(finding) for finding in checked.findings] if checked else [],
        "failures": outcome.failures,
    }


def show(console: Console, outcome: Outcome) -> None:
    """Print tables of what went wrong and what came of it, and the verdict."""
    faults = Table("what went wrong", "times")
    for name, count in sorted(outcome.coverage.counts.items()):
        faults.add_row(name, f"{count:,}", style="" if count else "red")
    console.print(faults)
    results = Table("transactions", "times")
    for name in ("ok", "failed", "unknown"):
        results.add_row(name, f"{outcome.ended[name]:,}")
    results.add_row("plain sends and commits of offsets", f"{outcome.ended['plain']:,}")
    console.print(results)
    checked = outcome.checked
    for line in [*outcome.failures, *map(str, checked.findings if checked else ())][:FINDINGS_SHOWN]:
        console.print(f"  {line}", markup=False, style="red")
    kills, minutes = outcome.coverage.counts[KILL], max(outcome.seconds / 60, 1 / 60)
    console.print(
        f"{kills:,} kills in {minutes:.1f} minutes ({kills / minutes:.0f} a minute), "
        f"{outcome.messages:,} messages in the logs: "
        f"[bold]{checked.verdict.value if checked else 'not checked'}[/], "
        f"{len(checked.findings) if checked else 0} findings (seed {outcome.seed})"
    )


if __name__ == "__main__":
    main()
