"""The sink when query, driver or broker are killed in each phase of a micro-batch, and when tasks run twice.

In most tests the query dies, and the driver goes on: its processes end at that phase as if they were killed,
nothing is aborted, and Spark's checkpoint stays as it was (see tests/spark/staged.py). Broker and checkpoint
can't tell that from the death of a driver, and another one need not be started. One test kills a driver.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from tests.broker_process import BrokerProcess, eventually
from tests.requirements import missing
from tests.spark import standalone
from tests.spark.program import driver, has_ended, run
from tests.spark.query import WAIT_SECONDS, finish, lines_of, make_input, start_query
from tests.spark.staged import FIRST_ATTEMPT, KEY, SECOND_ATTEMPT, SENT, STAGES, Stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = KEY + 3  # one batch before the kill, that one, one that comes later, and another one
COMMITTED_BEFORE = [line for file in range(KEY) for line in lines_of(file)]
Seen = Callable[[], list[str]]


@pytest.fixture
def broker(sink_broker: BrokerProcess) -> BrokerProcess:
    return sink_broker


@pytest.mark.parametrize("phase", STAGES)
def test_a_query_that_dies_in_any_phase_loses_and_repeats_nothing(
    phase: str, spark: SparkSession, broker: BrokerProcess, seen: Seen, tmp_path: Path
) -> None:
    lines, stage = make_input(tmp_path, FILES), Stage(tmp_path)
    stage.choose(phase)
    query = start_query(spark, broker.address, tmp_path, "staged")
    come_to(phase, stage, broker, lambda: not query.isActive)
    stage.mark_dead()
    with pytest.raises(StreamingQueryException, match=r"Writing job failed|worker exited unexpectedly"):
        finish(query)
    os.kill(broker.pid, signal.SIGCONT)
    check_died(phase, tmp_path, seen)
    finish(start_query(spark, broker.address, tmp_path))
    assert sorted(seen()) == sorted(lines)


@pytest.mark.parametrize("phase", STAGES)
def test_a_broker_that_is_killed_in_any_phase_loses_and_repeats_nothing(
    phase: str, spark: SparkSession, broker: BrokerProcess, seen: Seen, tmp_path: Path
) -> None:
    lines, stage = make_input(tmp_path, FILES), Stage(tmp_path)
    stage.choose(phase)
    query = start_query(spark, broker.address, tmp_path, "staged")
    last = come_to(phase, stage, broker, lambda: not query.isActive)
    broker.restart()
    stage.let_go(last)
    finish_or_be_aborted(query)
    finish(start_query(spark, broker.address, tmp_path))
    assert sorted(seen()) == sorted(lines)


@pytest.mark.parametrize("phase", ["in the commit"])
def test_a_driver_that_is_killed_loses_and_repeats_nothing(
    phase: str, spark: SparkSession, broker: BrokerProcess, seen: Seen, tmp_path: Path
) -> None:
    lines, stage = make_input(tmp_path, FILES), Stage(tmp_path)
    stage.choose(phase)
    with driver(broker, tmp_path, "staged") as program:
        come_to(phase, stage, broker, lambda: has_ended(program, tmp_path))
    stage.mark_dead()
    os.kill(broker.pid, signal.SIGCONT)
    check_died(phase, tmp_path, seen)
    finish(start_query(spark, broker.address, tmp_path))
    assert sorted(seen()) == sorted(lines)


def test_a_zombie_driver_writes_nothing(
    spark: SparkSession, broker: BrokerProcess, seen: Seen, tmp_path: Path
) -> None:
    """A driver is stopped when a task has written; its successor finishes the work; then it wakes up."""
    lines, stage = make_input(tmp_path, FILES), Stage(tmp_path)
    stage.choose("written")
    with driver(broker, tmp_path, "staged") as zombie:
        come_to("written", stage, broker, lambda: has_ended(zombie, tmp_path))
        os.killpg(zombie.pid, signal.SIGSTOP)
        finish(start_query(spark, broker.address, tmp_path))
        assert sorted(seen()) == sorted(lines)
        os.killpg(zombie.pid, signal.SIGCONT)
        stage.let_go("written")
        assert zombie.wait(WAIT_SECONDS), "it is told that it is none any more"
    assert sorted(seen()) == sorted(lines)


@pytest.mark.usefixtures("spark")
def test_of_two_attempts_beside_each_other_one_counts(
    broker: BrokerProcess, seen: Seen, tmp_path: Path
) -> None:
    """Spark starts a second attempt of a slow task (speculation): both write all rows."""
    if not standalone.is_possible():
        missing(f"this machine does not have the addresses {' and '.join(standalone.HOSTS)}")
    lines, stage = make_input(tmp_path, FILES), Stage(tmp_path)
    stage.choose(FIRST_ATTEMPT)
    with standalone.cluster(tmp_path) as master:
        run(broker, tmp_path, "staged", master)
    assert stage.is_reached(SECOND_ATTEMPT), "a second attempt has written its drafts"
    assert stage.may_go(SECOND_ATTEMPT), "while the first one lived, and had written as well"
    assert sorted(seen()) == sorted(lines)


def come_to(phase: str, stage: Stage, broker: BrokerProcess, is_over: Callable[[], bool]) -> str:
    """Wait until a query is in a phase. A commit is under way when its request has been sent to a broker that
    is stopped. Returns the stage at which it waits.
    """

    def reached(name: str) -> bool:
        assert not is_over(), f"it has ended before it was {name}"
        return stage.is_reached(name)

    eventually(lambda: reached(phase), WAIT_SECONDS)
    if phase != "in the commit":
        return phase
    os.kill(broker.pid, signal.SIGSTOP)
    stage.let_go(phase)
    eventually(lambda: reached(SENT), WAIT_SECONDS)
    return SENT


def finish_or_be_aborted(query: Any) -> None:
    """Wait for the end of a query. It may only fail because its drafts went with the broker."""
    try:
        finish(query)
    except StreamingQueryException as error:
        assert "was aborted" in str(error)


def check_died(phase: str, directory: Path, seen: Seen) -> None:
    """Spark has planned the batch, and does not know whether it is written; the broker does."""
    checkpoint = directory / "checkpoint"
    assert (checkpoint / "offsets" / str(KEY)).exists()
    assert not (checkpoint / "commits" / str(KEY)).exists()
    is_committed = phase in ("in the commit", "after the commit")
    expected = COMMITTED_BEFORE + (lines_of(KEY) if is_committed else [])
    eventually(lambda: sorted(seen()) == sorted(expected), WAIT_SECONDS)
