"""One target under atheris, in a process of its own, for some seconds; and what came of it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.targets import Target

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).parent / "corpus"
WORKER = "tests.fuzz.worker"
MEMORY_MIB_MAX = 256
INPUT_SECONDS_MAX = 10
POLL_SECONDS = 0.5
# A process inherits its parent's peak memory, which libFuzzer takes for its own: so a shell stands between.
OF_A_SMALL_PARENT = ("/bin/sh", "-c", '"$@"; exit $?', "sh")
START_SECONDS_MAX = 600  # on a busy machine: it imports much, and runs the kept corpus
LOG_LINES_SHOWN = 30
ANY_NUMBER = -1  # libFuzzer's, of executions
UNCAUGHT = " === Uncaught Python exception: ==="

NO_ATHERIS = "atheris is not installed: it has wheels for Linux on x86-64 and Python 3.11 to 3.13 only"

_PULSE = re.compile(r"^#(\d+)\t.* cov: (\d+)", re.MULTILINE)
_DONE = re.compile(r"^stat::number_of_executed_units: (\d+)$", re.MULTILINE)
_PEAK = re.compile(r"^stat::peak_rss_mb: +(\d+)$", re.MULTILINE)


class Outcome(NamedTuple):
    """What came of a target.

    Each of the files in `failures` repeats one failure; `log` is the end of the process's
    output.
    """

    target: str
    executions: int
    seconds: float
    new_coverage: int
    peak_mib: int
    failures: list[Path]
    exit_code: int
    log: str

    @property
    def is_good(self) -> bool:
        return self.exit_code == 0 and not self.failures


def has_atheris() -> bool:
    """Whether coverage-guided fuzzing can be had here."""
    return importlib.util.find_spec("atheris") is not None


def fuzz(
    target: Target,
    seconds: int,
    scratch: Path,
    found: Path,
    advance: Callable[[int], None] = lambda _executions: None,
    worker: str = WORKER,
    seed: int = 0,
    executions_max: int = ANY_NUMBER,
) -> Outcome:
    """Run a target for so many seconds or executions, or until something is found.

    The same `seed` draws the same inputs in the same order, if addresses can be fixed here; 0 draws new ones.

    New inputs go to `scratch`, those that fail to `found`. `advance(executions)` is called now and then with
    the number of executions so far.
    """
    for directory in (scratch, found):
        directory.mkdir(parents=True, exist_ok=True)
    before = set(found.iterdir())
    log = scratch.with_suffix(".log")
    began = time.monotonic()
    with log.open("wb") as output:
        python = [*fixed_addresses(), sys.executable, "-m", worker, target.name, str(found)]
        limits = (f"-max_total_time={seconds}", f"-runs={executions_max}")
        arguments = [*limits, *flags(target, found, seed), str(scratch), str(CORPUS / target.name)]
        process = subprocess.Popen(
            [*OF_A_SMALL_PARENT, *python, *arguments],
            cwd=ROOT,
            env=os.environ | hash_seed(seed),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            exit_code = wait(process, log, seconds + INPUT_SECONDS_MAX + START_SECONDS_MAX, advance)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    failures = sorted(set(found.iterdir()) - before)
    return outcome_of(target, log.read_text(errors="replace"), time.monotonic() - began, failures, exit_code)


@cache
def fixed_addresses() -> Sequence[str]:
    """The start of a command whose process has the same addresses each time; empty if the machine forbids it.

    libFuzzer tells comparisons apart by their addresses, which thus decide what inputs it makes.
    """
    setarch = [shutil.which("setarch") or "", "--addr-no-randomize"]
    is_allowed = setarch[0] and subprocess.run([*setarch, "true"], capture_output=True).returncode == 0
    return setarch if is_allowed else ()


def hash_seed(seed: int) -> dict[str, str]:
    """Python's own seed: the order of a set decides what is covered, and so which inputs are changed next."""
    return {"PYTHONHASHSEED": str(seed % 2**32)} if seed else {}


def flags(target: Target, found: Path, seed: int) -> Sequence[str]:
    """libFuzzer's. It does not look for inputs of other processes: it would once a second, and what it has
    tried by then decides what inputs it makes.
    """
    return (
        "-reload=0",
        f"-seed={seed % 2**31}",
        f"-rss_limit_mb={MEMORY_MIB_MAX}",
        f"-timeout={INPUT_SECONDS_MAX}",
        f"-max_len={target.bytes_max}",
        f"-artifact_prefix={found}/",
        "-print_final_stats=1",
    )


def wait(
    process: subprocess.Popen[bytes], log: Path, seconds_max: float, advance: Callable[[int], None]
) -> int:
    """Wait for the end, and tell how far it is; the exit code."""
    until = time.monotonic() + seconds_max
    while time.monotonic() < until:
        try:
            return process.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            pulses = _PULSE.findall(log.read_text(errors="replace"))
            advance(int(pulses[-1][0]) if pulses else 0)
    raise TimeoutError(f"{process.args!r} hangs, and libFuzzer did not end it")


def outcome_of(target: Target, said: str, seconds: float, failures: list[Path], exit_code: int) -> Outcome:
    """What libFuzzer has said, in figures."""
    pulses = _PULSE.findall(said)
    executions = max(
        [int(number) for number in _DONE.findall(said)] + [int(number) for number, _ in pulses], default=0
    )
    coverage = [int(count) for _, count in pulses]
    peak_mib = max(map(int, _PEAK.findall(said)), default=0)
    new = coverage[-1] - first_coverage(said) if coverage else 0
    return Outcome(target.name, executions, seconds, new, peak_mib, failures, exit_code, end_of(said))


def end_of(said: str) -> str:
    """What tells most of the end: from the exception on, if one has ended the process."""
    exception = said.rfind(UNCAUGHT)
    return said[exception:] if exception >= 0 else "\n".join(said.splitlines()[-LOG_LINES_SHOWN:])


def first_coverage(said: str) -> int:
    """That of the kept corpus."""
    begun = re.search(r"^#\d+\tINITED cov: (\d+)", said, re.MULTILINE)
    return int(begun[1]) if begun else 0
