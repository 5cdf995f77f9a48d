"""The sink when driver or broker are killed in each phase of a micro-batch, and when tasks run twice."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess, eventually
from tests.spark import standalone
from tests.spark.conftest import missing
from tests.spark.program import kill, make_input, run, start
from tests.spark.staged import FIRST_ATTEMPT, SECOND_ATTEMPT, SENT, STAGES, Stage

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.timeout(400)]


@pytest.fixture
def broker(sink_broker: BrokerProcess) -> BrokerProcess:
    return sink_broker


@pytest.mark.parametrize("victim", ["driver", "broker"])
@pytest.mark.parametrize("phase", STAGES)
def test_a_kill_in_any_phase_loses_and_repeats_nothing(
    phase: str, victim: str, broker: BrokerProcess, seen: Callable[[], list[str]], tmp_path: Path
) -> None:
    lines, stage = make_input(tmp_path), Stage(tmp_path)
    stage.choose(phase)
    driver = start(broker, tmp_path, "staged")
    try:
        last = come_to(phase, stage, driver, broker)
        if victim == "driver":
            kill(driver)
            stage.mark_dead()
            os.kill(broker.pid, signal.SIGCONT)
        else:
            broker.restart()
            stage.let_go(last)
            driver.wait(120)
    finally:
        if driver.poll() is None:
            kill(driver)
    run(broker, tmp_path)
    assert sorted(seen()) == sorted(lines)


def test_of_two_attempts_beside_each_other_one_counts(
    broker: BrokerProcess, seen: Callable[[], list[str]], tmp_path: Path
) -> None:
    """Spark starts a second attempt of a slow task (speculation): both write all rows."""
    if not standalone.is_possible():
        missing(f"this machine does not have the addresses {' and '.join(standalone.HOSTS)}")
    lines, stage = make_input(tmp_path), Stage(tmp_path)
    stage.choose(FIRST_ATTEMPT)
    with standalone.cluster(tmp_path) as master:
        run(broker, tmp_path, "staged", master)
    assert stage.is_reached(SECOND_ATTEMPT), "a second attempt has written its drafts"
    assert stage.may_go(SECOND_ATTEMPT), "while the first one lived, and had written as well"
    assert sorted(seen()) == sorted(lines)


def come_to(phase: str, stage: Stage, driver: subprocess.Popen[bytes], broker: BrokerProcess) -> str:
    """Wait until the program is in a phase. A commit is under way when its request has been sent to a broker
    that is stopped. Returns the stage at which it waits.
    """

    def reached(name: str) -> bool:
        assert driver.poll() is None, "the driver has ended"
        return stage.is_reached(name)

    eventually(lambda: reached(phase), 120)
    if phase != "in the commit":
        return phase
    os.kill(broker.pid, signal.SIGSTOP)
    stage.let_go(phase)
    eventually(lambda: reached(SENT), 60)
    return SENT
