"""One run of TLC over a model of docs/models: its constants in, what was found out."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.systems.maven import java
from tests.fetch.tlc import MODELS, TLC

MEMORY = "5g"
NO_ERROR, VIOLATION = 0, 12  # exit codes of TLC


@dataclass(frozen=True)
class Model:
    """A module: the value of each constant unless a run says otherwise, what must hold, and what may be
    exchanged for one another.
    """

    module: str
    constants: Mapping[str, str]
    invariants: tuple[str, ...]

    def configuration(self, changed: Mapping[str, str]) -> str:
        """TLC's configuration file, with some constants changed. Raises KeyError for an unknown one."""
        for name in changed:
            self.constants[name]
        rows = [f"    {name} = {value}" for name, value in {**self.constants, **changed}.items()]
        checked = ["INVARIANTS " + " ".join(self.invariants), "CHECK_DEADLOCK FALSE", "SYMMETRY Symmetry"]
        return "\n".join(["SPECIFICATION Spec", "CONSTANTS", *rows, *checked, ""])


@dataclass(frozen=True)
class Found:
    """What a run has found: the invariant that is violated, or None; how many distinct states there are, and
    whether these are all. `steps` is the length of the shortest run that violates it.
    """

    violated: str | None
    states: int
    is_whole: bool
    steps: int
    output: str


class TlcFailed(Exception):
    """TLC did not understand a model, or failed. The message is the end of its output."""


def find_tlc() -> Path:
    """TLC's jar. Raises Unavailable if nobody has fetched it, or without a Java."""
    java()
    return next(TLC.find().glob("*.jar"))


def check(model: Model, changed: Mapping[str, str], seconds: float, workers: int = 1) -> Found:
    """Check a model for at most so long. Raises TlcFailed, and Unavailable without a Java or TLC."""
    jar = find_tlc()
    with tempfile.TemporaryDirectory(prefix="faircopy-tlc-") as scratch:
        directory = Path(scratch)
        module = directory / f"{model.module}.tla"
        module.write_text((MODELS / module.name).read_text())
        module.with_suffix(".cfg").write_text(model.configuration(changed))
        command = [str(java()), f"-Xmx{MEMORY}", "-XX:+UseParallelGC", f"-XX:ParallelGCThreads={workers}"]
        # It unpacks its own modules there, and must not meet another TLC that does the same.
        command += [
            f"-Djava.io.tmpdir={scratch}",
            "-cp",
            str(jar),
            "tlc2.TLC",
            "-workers",
            str(workers),
            "-nowarning",
        ]
        command += ["-metadir", str(directory / "states"), module.name]
        with (directory / "output").open("w+") as output:
            process = subprocess.Popen(command, cwd=directory, stdout=output, stderr=subprocess.STDOUT)
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                process.kill()
                process.wait()
            output.seek(0)
            return read(output.read(), code)


def read(output: str, code: int | None) -> Found:
    """What TLC's output says; `code` is its exit code, or None if it was ended. Raises TlcFailed."""
    if code not in (NO_ERROR, VIOLATION, None):
        raise TlcFailed(f"exit code {code}: {output[-3000:]}")
    violated = re.search(r"Invariant (\w+) is violated", output)
    states = re.findall(r"([\d,]+) distinct states found", output)
    return Found(
        violated[1] if violated else None,
        int(states[-1].replace(",", "")) if states else 0,
        code == NO_ERROR,
        len(re.findall(r"^State \d+:", output, re.MULTILINE)),
        output,
    )
