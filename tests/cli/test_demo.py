"""The demo passes its own checks, in small."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

from demo.flights import SOURCE, flights
from demo.process import CHECKOUT, environment
from demo.tally import Tally
from tests.broker_process import BrokerProcess, eventually

FLIGHTS = 100


@pytest.mark.timeout(300)
def test_a_small_demo_passes() -> None:
    command = [sys.executable, "-m", "faircopy", "demo", "--flights", "20000", "--no-spark"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "half flights" in run.stdout
    assert "no:" not in run.stdout


def test_it_is_run_from_anywhere(tmp_path: Path) -> None:
    """Its arguments are passed on, and a folder of the same name is not taken for it."""
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "__main__.py").touch()
    for arguments, shown in (
        (["--help"], "--no-spark"),
        (["spark", "--help"], "Usage: faircopy demo spark "),
    ):
        command = [sys.executable, "-P", "-m", "faircopy", "demo", *arguments]
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=280, cwd=tmp_path, env=environment()
        )
        assert run.returncode == 0 and shown in run.stdout, run.stdout + run.stderr


@pytest.mark.parametrize("arguments", [[], ["--help"], ["spark", "--kills", "1"]])
def test_without_a_checkout_it_says_what_to_do(tmp_path: Path, arguments: list[str]) -> None:
    """The package alone, as a wheel installs it."""
    shutil.copytree(
        CHECKOUT / "faircopy", tmp_path / "faircopy", ignore=shutil.ignore_patterns("__pycache__")
    )
    command = [sys.executable, "-P", "-m", "faircopy", "demo", *arguments]
    alone = environment() | {"PYTHONPATH": str(tmp_path)}
    run = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=tmp_path, env=alone)
    assert (run.returncode, run.stdout) == (1, "")
    (line,) = run.stderr.splitlines()
    assert "`git clone` the repository, and run `make demo` there" in line


def test_a_worker_tells_of_commits_that_its_predecessor_did_not_tell_of(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "topic.partitions=3") as broker:
        producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
        for flight in islice(flights(), FLIGHTS):
            producer.produce(SOURCE, json.dumps(flight), partition=0)
        assert producer.flush(60) == 0
        command = [sys.executable, "-P", "-m", "demo.worker", broker.address, "0", str(FLIGHTS)]
        heard: list[tuple[int, int]] = []  # up to which offset all is committed, and how many acks
        for _life in range(2):
            tally = Tally()
            run = subprocess.run(
                command, capture_output=True, text=True, timeout=280, check=True, env=environment()
            )
            for line in run.stdout.splitlines():
                tally.hear_worker(0)(json.loads(line))
            heard.append((tally.offsets[0], len(tally.committed)))
        assert heard == [(FLIGHTS, 1), (FLIGHTS, 0)]


@pytest.fixture
def _interrupts_are_heard() -> Iterator[None]:
    """Tests that a shell runs in the background would hand on that SIGINT is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interrupts_are_heard")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_demo_that_is_ended_ends_all_that_it_has_started(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "faircopy", "demo", "--no-spark"]
    with psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        eventually(lambda: len(run.children(recursive=True)) >= 3)
        started = run.children(recursive=True)
        run.send_signal(number)
        assert run.wait(120) != 0
    assert psutil.wait_procs(started, 60)[1] == []
