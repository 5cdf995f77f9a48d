"""Celery's tasks go through Kafka: those that ask, and a worker that does them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.broker_process import BrokerProcess, eventually
from tests.ecosystem.packages.python import PYTHON
from tests.ecosystem.program import ForeignProgram, python_program
from tests.finding import a_finding_if_not

TASKS = 100
PATIENCE_SECONDS = 240.0


def test_celery(tmp_path: Path) -> None:
    """A worker does each task once, before and after kill -9 of the broker."""
    with BrokerProcess(tmp_path) as broker:
        worker = ["-m", "celery", "-A", "celery_tasks", "worker", "--loglevel=INFO"]
        with python_program("celery", worker, tmp_path / "worker", BROKER=broker.address) as program:
            ensure_done(broker, range(TASKS), tmp_path, program)
            broker.restart()
            ensure_done(broker, range(TASKS, 2 * TASKS), tmp_path, program)
            program.stop()
        broker.ensure_no_traceback()


def ensure_done(broker: BrokerProcess, tasks: range, directory: Path, worker: ForeignProgram) -> None:
    """Ask for these, and see the results of all up to the last of them."""
    arguments = [str(PYTHON / "celery_tasks.py"), str(tasks.start), str(tasks.stop)]
    asking = python_program("celery", arguments, directory / "asking", BROKER=broker.address)
    asking.start()
    asking.wait()
    eventually(lambda: len(set(results(worker))) >= tasks.stop, PATIENCE_SECONDS)
    with a_finding_if_not():
        assert set(results(worker)) == set(range(1, tasks.stop + 1))
    assert len(results(worker)) == tasks.stop  # Celery may do a task again, which is no fault of the broker's


def results(worker: ForeignProgram) -> list[int]:
    """What it has printed of the tasks that it did."""
    return [int(number) for number in re.findall(r"succeeded in \S+s: (\d+)", worker.log)]
