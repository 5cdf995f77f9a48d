"""The store of one machine, shared by processes that are killed."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from faircopy.arbiter.lmdb_backend import LmdbBackend
from tests.arbiter.worker import LISTS
from tests.broker_process import eventually
from tests.seeds import seed_for

ROOT = Path(__file__).parents[2]
WORKERS, KILLS = 3, 12
SECONDS = 120.0  # for what takes one or two


class Worker:
    """A worker, whose output is in files."""

    def __init__(self, directory: Path, name: str) -> None:
        self._output = directory / f"worker-{name}"
        self._errors = directory / f"worker-{name}-errors"
        with self._output.open("w") as output, self._errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.arbiter.worker", str(directory / "cluster"), name],
                stdout=output,
                stderr=errors,
                cwd=ROOT,
            )

    def lines(self) -> list[str]:
        """What it has printed, whole lines only. It must not have ended."""
        assert self.process.poll() in (None, -signal.SIGKILL), self._errors.read_text()
        return self._output.read_text().split("\n")[:-1]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.mark.timeout(400)
def test_nothing_acknowledged_is_lost_and_leases_end_when_processes_are_killed(tmp_path: Path) -> None:
    chance = random.Random(seed_for("killed processes"))
    workers = [Worker(tmp_path, f"{number}") for number in range(WORKERS)]
    dead = list[Worker]()
    try:
        for number in range(KILLS):
            eventually(lambda: all("ready" in worker.lines() for worker in workers), SECONDS)
            time.sleep(chance.random() / 5)
            victim = chance.randrange(WORKERS)
            workers[victim].kill()
            dead.append(workers[victim])
            workers[victim] = Worker(tmp_path, f"{WORKERS + number}")
        last = workers[0]
        eventually(lambda: len(last.lines()) > KILLS, SECONDS)
    finally:
        for worker in workers:
            worker.kill()
    acknowledged = [mark for worker in [*dead, *workers] for mark in worker.lines() if mark != "ready"]
    there = asyncio.run(asyncio.wait_for(look(tmp_path / "cluster"), SECONDS))
    assert len(acknowledged) >= KILLS
    assert set(acknowledged) <= set(there)
    assert not [mark for mark, count in Counter(there).items() if count > 1]


async def look(directory: Path) -> list[str]:
    """All marks that are there, once the leases of the dead have ended."""
    backend = LmdbBackend(directory, "observer", asyncio.get_running_loop())
    snapshot = await backend.snapshot()
    while any(key.startswith(("workers/", "sessions/")) for key in snapshot.entries):
        await anext(aiter(backend.changes(snapshot.revision)))
        snapshot = await backend.snapshot()
    await backend.close()
    return [mark for key in LISTS for mark in json.loads(snapshot.entries[key].value)]
