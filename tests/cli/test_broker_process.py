"""The broker of the tests: nobody awaits it for ever, and it never outlives who started it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests import child_process
from tests.broker_process import BrokerProcess, eventually
from tests.child_process import next_line

SAYS_NOTHING = "import time; time.sleep(3_600)"

STARTS_A_BROKER = """
import sys, time
from pathlib import Path
from tests.broker_process import BrokerProcess

broker = BrokerProcess(Path(sys.argv[1])).start()
print(broker.pid, flush=True)
time.sleep(3_600)
"""


def test_a_broker_that_says_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "silent.py").write_text(SAYS_NOTHING)
    (tmp_path / "broker.log").write_text("what it logged")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(child_process, "READY_SECONDS", 0.1)
    broker = BrokerProcess(tmp_path)
    broker.program = ("silent",)
    with pytest.raises(RuntimeError, match="the broker did not become ready; it logged:\nwhat it logged"):
        broker.start()
    assert broker.process is None


def test_a_broker_does_not_outlive_who_started_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTS_A_BROKER, str(tmp_path)]
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as parent:
        broker = psutil.Process(int(next_line(parent)))
        assert not has_ended(broker)
        parent.kill()
    eventually(lambda: has_ended(broker))


def has_ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
