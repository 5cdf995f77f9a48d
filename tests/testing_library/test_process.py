"""The process `faircopy start --ephemeral`: what it prints, when it ends, what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from faircopy.testing import Broker, BrokerEnded, CannotStart
from tests.broker_process import environment, eventually
from tests.child_process import next_line, start_child

START = (sys.executable, "-m", "faircopy", "start", "--ephemeral")
WAIT_SECONDS = 60


@contextmanager
def started(*arguments: str, **options: Any) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The process and what it has said of itself."""
    options = {"stdin": subprocess.DEVNULL, "env": environment()} | options
    process = start_child([*START, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    try:
        yield process, json.loads(next_line(process))
    finally:
        process.kill()
        process.communicate()


def brokers_of(pid: int) -> list[psutil.Process]:
    found: list[psutil.Process] = psutil.Process(pid).children()
    return found


def is_gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_it_prints_one_line_and_nothing_else() -> None:
    with started() as (process, said):
        assert said["pid"] == process.pid
        assert Path(said["data_dir"]).is_dir()
        process.send_signal(signal.SIGTERM)
        rest, logged = process.communicate(timeout=WAIT_SECONDS)
    assert (rest, process.returncode) == ("", 0)
    assert "Traceback" not in logged
    assert not Path(said["data_dir"]).parent.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_and_its_broker(number: signal.Signals) -> None:
    with started() as (process, said):
        (broker,) = brokers_of(process.pid)
        process.send_signal(number)
        assert process.wait(WAIT_SECONDS) == 0
    assert is_gone(broker)
    assert not Path(said["data_dir"]).parent.exists()


def test_the_end_of_its_input_is_its_end() -> None:
    with started(stdin=subprocess.PIPE) as (process, said):
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        assert process.wait(WAIT_SECONDS) == 0
    assert not Path(said["data_dir"]).parent.exists()


PARENT = f"""
import subprocess, sys
child = subprocess.Popen({list(START)!r}, stdin=subprocess.{{stdin}}, stdout=subprocess.PIPE, text=True)
print(child.stdout.readline(), end="", flush=True)
child.wait()
"""


@pytest.mark.parametrize("stdin", ["PIPE", "DEVNULL"])
def test_it_ends_with_its_parent_however_that_ends(stdin: str) -> None:
    parent = start_child(
        [sys.executable, "-c", PARENT.format(stdin=stdin)], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    said = json.loads(next_line(parent))
    (keeper,) = brokers_of(parent.pid)
    (broker,) = brokers_of(keeper.pid)
    parent.kill()
    parent.communicate()
    eventually(lambda: is_gone(keeper) and is_gone(broker))
    eventually(lambda: not Path(said["data_dir"]).parent.exists())


def test_a_broker_whose_keeper_is_killed_ends_and_removes_its_data() -> None:
    with started() as (process, said):
        (broker,) = brokers_of(process.pid)
        process.kill()
        eventually(lambda: is_gone(broker))
    eventually(lambda: not Path(said["data_dir"]).parent.exists())


def test_a_broker_that_somebody_kills_comes_back_at_the_same_address() -> None:
    with Broker() as broker:
        topic, killed = broker.create_topic(), broker.pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: broker.starts == 2)
        assert broker.pid != killed
        assert broker.values(topic) == []


def test_it_ends_when_its_broker_ends_by_itself() -> None:
    with Broker() as broker:
        assert broker.pid is not None
        os.kill(broker.pid, signal.SIGTERM)
        with pytest.raises(BrokerEnded):
            eventually(lambda: broker.starts == 2)


@pytest.mark.parametrize(
    "more",
    [
        ("--data-dir", "data"), ("--arbiter", "lmdb:here"), ("--replica-set", "x"), ("--broker-id", "2"),
        ("--alone",), ("--repair",), ("--new-set",), ("--replicas", "1,2"),
    ],
)  # fmt: skip
def test_what_is_about_a_directory_that_stays_is_refused(more: tuple[str, ...], tmp_path: Path) -> None:
    done = subprocess.run(
        [*START, *more], cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_SECONDS, env=environment()
    )
    assert done.returncode == 1
    assert "--ephemeral makes a directory of its own" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_settings_have_the_last_word_but_not_those_of_another_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRCOPY_DATA_DIR", "/nowhere")
    monkeypatch.setenv("FAIRCOPY_NO_SUCH_SETTING", "1")
    with Broker(settings={"topic.partitions": 3, "auto.create.topics": True}) as broker:
        from confluent_kafka.admin import AdminClient

        topics = AdminClient(broker.confluent_kafka.client()).list_topics("new", timeout=WAIT_SECONDS).topics
        assert len(topics["new"].partitions) in (0, 3)  # it may not know them yet
        eventually(lambda: broker.values("new") == [])


def test_a_broker_that_can_not_start_says_why() -> None:
    with pytest.raises(CannotStart, match=r"topic\.partitions"), Broker(settings={"topic.partitions": 0}):
        pass


def test_a_broker_that_is_closed_is_gone() -> None:
    broker = Broker()
    with pytest.raises(BrokerEnded, match="not open"):
        broker.create_topic()
    with broker:
        directory = Path(broker.data_directory)
        assert directory.is_dir()
    assert not directory.exists()
    broker.close()
