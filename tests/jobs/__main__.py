"""`python -m tests.jobs`: run jobs, try again what failed beside others, and sum up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click

from tests.jobs.outcome import Outcome, slowest, summary
from tests.jobs.table import BY_NAME, CHECK, JOBS, ROOT, Job, files_of

# A net against hanging; each item has its own timeout.
JOB_SECONDS_MAX = 45 * 60
SLOWEST_SHOWN = 20
Outcomes = dict[Job, Outcome]
Seconds = dict[Job, float]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[JOB]...")
@click.option("--list", "is_list", is_flag=True, help="Say what there is, and run nothing.")
@click.option("--workers", type=click.IntRange(1), help="How many processes run the tests of a job.")
def main(names: tuple[str, ...], is_list: bool, workers: int | None) -> None:
    """Run these jobs, by default all that a change must pass.

    If the job "check" fails, the jobs after it are not run. What fails in another job beside other tests is
    tried again alone, once, at the end. If it passes then, the run is green, and the test is said to be
    unsteady.

    \b
    Examples:
      python -m tests.jobs
      python -m tests.jobs check
      python -m tests.jobs spark kills
    """
    if unknown := [name for name in names if name not in BY_NAME]:
        raise click.UsageError(f"no job is called {unknown[0]!r}; there are {', '.join(BY_NAME)}")
    jobs = [BY_NAME[name] for name in names] or [job for job in JOBS if job.is_in_gate]
    if is_list:
        return show_jobs(jobs)
    outcomes, seconds = run_all(jobs, workers)
    try_again(outcomes)
    report(jobs, outcomes, seconds)
    sys.exit(0 if len(outcomes) == len(jobs) and all(each.is_good for each in outcomes.values()) else 1)


def show_jobs(jobs: Sequence[Job]) -> None:
    """Print the jobs, and what each runs."""
    for job in jobs:
        click.echo(f"{job.name:<10}{len(files_of(job)):>4} files  {job.about}")


def run_all(jobs: Sequence[Job], workers: int | None) -> tuple[Outcomes, Seconds]:
    """Run jobs one after the other; only those that were run have an outcome."""
    outcomes: Outcomes = {}
    seconds: Seconds = {}
    for job in jobs:
        click.secho(f"== {job.name}: {job.about}", bold=True)
        began = time.monotonic()
        failed = [command for command in job.commands if not succeeds(command)]
        tests = run(job, "-n", str(workers or job.workers), "--dist", job.distribution)
        outcomes[job] = Outcome(tests.items, [*failed, *tests.errors])
        seconds[job] = time.monotonic() - began
        click.echo(f"== {job.name}: {summary([outcomes[job]])}, {minutes(seconds[job])}\n")
        if job is CHECK and not outcomes[job].is_good:
            break
    return outcomes, seconds


def succeeds(command: str) -> bool:
    """Run a module of Python with arguments, and say how long it took."""
    began = time.monotonic()
    code = subprocess.run([sys.executable, "-m", *command.split()], cwd=ROOT).returncode
    click.echo(f"{command}: {'good' if code == 0 else 'RED'}, {minutes(time.monotonic() - began)}")
    return code == 0


def try_again(outcomes: Outcomes) -> None:
    """Run what may have failed because the machine was busy, one item at a time."""
    for job, outcome in outcomes.items():
        if outcome.may_be_tried_again and not job.is_deterministic:
            click.secho(f"== {job.name}: {len(outcome.failed)} failed, and are tried again alone", bold=True)
            outcomes[job] = outcome.tried_again(run(job, "--last-failed", "--last-failed-no-failures=none"))


def run(job: Job, *options: str) -> Outcome:
    """Run pytest on the files of a job, in a process of its own."""
    if not files_of(job):
        return Outcome(errors=["no test file belongs to it"])  # pytest would take all there are
    with tempfile.TemporaryDirectory() as scratch:
        record = Path(scratch, "record.json")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.jobs.recording",
            "--record",
            str(record),
        ]
        command += ["-o", f"cache_dir=.pytest_cache/{job.name}", *options]
        if job.is_deterministic:
            command += ["-p", "tests.deterministic"]
        error = ended([*command, *files_of(job)])
        if not record.exists():
            return Outcome(errors=[f"pytest {error or 'ended without a record'}"])
        outcome = Outcome.from_json(record.read_text())
        return Outcome(outcome.items, [*outcome.errors, *([f"pytest {error}"] if error else [])])


def ended(command: list[str]) -> str:
    """Run pytest. Returns what went wrong with the run as a whole, or "" if at most tests failed."""
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            code = process.wait(JOB_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"did not end within {minutes(JOB_SECONDS_MAX)}"
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)
            process.wait()
            raise
    return "" if code in (0, 1) else f"ended with code {code}"


def report(jobs: Sequence[Job], outcomes: Outcomes, seconds: Seconds) -> None:
    """Print how long it all took, what was unsteady, how to repeat what is red, and the summary."""
    click.secho("== slowest items", bold=True)
    for taken, name in slowest(outcomes.values(), SLOWEST_SHOWN):
        click.echo(f"{taken:8.1f} s  {name}")
    click.secho("== jobs", bold=True)
    for job in jobs:
        line = (
            f"{job.name:<10}{minutes(seconds[job]):>14}  {summary([outcomes[job]])}"
            if job in outcomes
            else ""
        )
        click.echo(line or f"{job.name:<10}{'':>14}  not run, since {CHECK.name} failed")
    for outcome in outcomes.values():
        for name in outcome.unsteady:
            click.secho(f"unsteady: {name}", fg="yellow")
    for job, outcome in outcomes.items():
        for name in [*outcome.failed, *outcome.errors]:
            click.secho(f"red: {job.name}: {name}", fg="red")
        if not outcome.is_good:
            click.secho(f"again: make {'check' if job is CHECK else f'test JOB={job.name}'}", fg="red")
    click.echo(summary(outcomes.values()))


def minutes(seconds: float) -> str:
    """A duration for people."""
    return f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"


if __name__ == "__main__":
    main()
