"""`python -m tests.proof`: the stages one after the other, with progress, and the page of results."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from tests.jobs.table import BY_NAME as JOBS
from tests.jobs.table import ROOT, files_of
from tests.proof.results import Result, from_json, page_of, to_json
from tests.proof.stages import BY_NAME, STAGES, Stage
from tests.quarantine.entries import entries

LOGS = ROOT / ".proof"
LOOK_SECONDS = 1.0
SAID_COLUMNS = 60


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[STAGE]...")
@click.option("--small", "is_small", is_flag=True, help="Seconds of each stage, to see that it runs.")
@click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    default=ROOT / "docs",
    help="Where PROOF.md and proof.json are; by default docs.",
)
def main(names: tuple[str, ...], is_small: bool, results: Path) -> None:
    """Run the long proof, all of it or these stages, with new seeds. It takes hours.

    The page PROOF.md gets the newest result of each stage. The output of a stage is in .proof/STAGE.log.

    \b
    Examples:
      python -m tests.proof
      python -m tests.proof soak fuzz
      python -m tests.proof --small --results /tmp/proof
    """
    if unknown := [name for name in names if name not in BY_NAME]:
        raise click.UsageError(f"no stage is called {unknown[0]!r}; there are {', '.join(BY_NAME)}")
    stages = [BY_NAME[name] for name in names] or [stage for stage in STAGES if has_work(stage)]
    found = run_all(stages, is_small, Console())
    write(results, found)
    sys.exit(0 if all(each.is_good for each in found) else 1)


def has_work(stage: Stage) -> bool:
    """Whether there is something to run; the quarantine may be empty."""
    return stage.name != "quarantine" or bool(files_of(JOBS["quarantine"]))


def run_all(stages: Sequence[Stage], is_small: bool, console: Console) -> list[Result]:
    """Run stages, and say of each what came of it."""
    found = []
    with progress_on(console) as progress:
        whole = progress.add_task("proof", total=len(stages), said="")
        for stage in stages:
            result = run(stage, is_small, progress)
            colour, word = ("green", "good") if result.is_good else ("bold red", "FOUND")
            console.print(f"[{colour}]{word}[/] {stage.name}: {result.said}", soft_wrap=True)
            progress.advance(whole)
            found.append(result)
    return found


def progress_on(console: Console) -> Progress:
    """A line for the whole, and one for the stage that runs, with its own last line."""
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    return Progress(*columns, TextColumn("{task.fields[said]}", markup=False), console=console)


def run(stage: Stage, is_small: bool, progress: Progress) -> Result:
    """Run a stage, its output into a log."""
    log = LOGS / f"{stage.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    task = progress.add_task(f"  {stage.name}", total=None, said="")
    began = time.monotonic()
    with log.open("wb") as output:
        command = [sys.executable, "-m", *stage.arguments(is_small=is_small)]
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, env=environment(is_small)
        )
        try:
            code = wait(process, log, progress, task)
        finally:
            process.kill()
            process.wait()
    progress.remove_task(task)
    today = datetime.now(UTC).date().isoformat()
    return Result(stage.name, code == 0, last_line(log), time.monotonic() - began, today, commit())


def wait(process: subprocess.Popen[bytes], log: Path, progress: Progress, task: TaskID) -> int:
    """Wait for the end of a stage, and show its last line meanwhile. Returns the exit code."""
    while True:
        try:
            return process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            progress.update(task, said=last_line(log)[:SAID_COLUMNS])


def environment(is_small: bool) -> dict[str, str]:
    """An environment in which nothing is skipped, and all seeds are new, unless a stage is only tried."""
    given = {name: value for name, value in os.environ.items() if is_small or name != "FAIRCOPY_SEED"}
    return given | {"FAIRCOPY_REQUIRE_ALL": "1", "COLUMNS": "200"}


def last_line(log: Path) -> str:
    """The last line of a log that says something."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else "nothing"


def commit() -> str:
    """What is tried: the commit, and whether something has changed since."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def write(directory: Path, found: Sequence[Result]) -> None:
    """Add results to those of before, and write the page anew."""
    directory.mkdir(parents=True, exist_ok=True)
    data = directory / "proof.json"
    results = from_json(data.read_text()) if data.exists() else {}
    results |= {each.stage: each for each in found}
    data.write_text(to_json(results))
    today = datetime.now(UTC).date()
    (directory / "PROOF.md").write_text(page_of(results, list(entries()), today))


if __name__ == "__main__":
    main()
