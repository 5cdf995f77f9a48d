"""What signals do to a broker: before it is ready, while it serves, while it stops."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

from faircopy.api.list_offsets import SCHEMA as LIST_OFFSETS
from faircopy.client.connection import BrokerConnection
from tests.broker_process import STOP_SECONDS, BrokerProcess, environment, eventually
from tests.child_process import next_line, start_child

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


@pytest.fixture(autouse=True)
def _hangups_are_heard() -> Iterator[None]:
    """Tests under nohup would hand on that SIGHUP is ignored, and a broker keeps to that."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def rows_files(broker: BrokerProcess) -> list[Path]:
    """The files of the plain table that hold rows."""
    found = (broker.data_directory / "plain" / "t").glob("d-*.parquet")
    return [path for path in found if "schema" not in path.name]


def produce(address: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(60) == 0


def end_offset(address: str, topic: str) -> int:
    body = {"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}
    with BrokerConnection(address) as connection:
        answer = connection.ask(LIST_OFFSETS, 5, {"topics": [body]}).topics[0].partitions[0]
    assert not answer.error_code
    return int(answer.offset)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_stops_it_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with BrokerProcess(tmp_path) as broker:
        produce(broker.address, "t", 10)
        assert broker.process is not None
        os.kill(broker.pid, number)
        assert broker.process.wait(STOP_SECONDS) == 0
        assert f"{number.name}: stopping" in broker.log
        broker.stop()
        broker.start()
        assert end_offset(broker.address, "t") == 10
        broker.ensure_no_traceback()


def test_under_nohup_a_terminal_that_closes_does_not_stop_it(tmp_path: Path) -> None:
    command = ["nohup", sys.executable, "-m", "faircopy", "start", "--data-dir", str(tmp_path / "data")]
    with broker_on(tmp_path, [*command, "--listen", "127.0.0.1:0"]) as process:
        address = next_line(process).split()[-1]
        process.send_signal(signal.SIGHUP)
        produce(address, "t", 10)
        assert end_offset(address, "t") == 10


@contextmanager
def broker_on(directory: Path, command: list[str]) -> Iterator[subprocess.Popen[str]]:
    with (directory / "broker.log").open("w") as log:
        process = start_child(command, stdout=subprocess.PIPE, stderr=log, env=environment())
    assert process.stdout is not None
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


# -- a disk that takes its time ------------------------------------------------------------------------------

SLOW_DISK = """
import os, sys, time
from pathlib import Path
from faircopy.cli import signals
from faircopy.cli.main import main
from faircopy.storage.system import System, mount

call, slow = sys.argv.pop(), Path(sys.argv.pop())
signals.SAME_SIGNAL_SECONDS = 0.0

def take_time(self, *arguments):
    if slow.exists():
        os.write(1, b"the disk takes its time\\n")  # at once: several threads may say it
        time.sleep(300)
    return getattr(System, call)(self, *arguments)

with mount(type("SlowSystem", (System,), {call: take_time})()):
    main()
"""


def slow_at(directory: Path, call: str) -> list[str]:
    """A broker whose disk takes its time for one kind of call, while the file `slow` is there."""
    arguments = [
        "--data-dir",
        str(directory / "data"),
        "--listen",
        "127.0.0.1:0",
        str(directory / "slow"),
        call,
    ]
    return [sys.executable, "-c", SLOW_DISK, "start", *arguments]


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_in_recovery_is_heard_at_once(tmp_path: Path, number: signal.Signals) -> None:
    with BrokerProcess(tmp_path) as broker:
        produce(broker.address, "t", 10)
        broker.kill()
        (tmp_path / "slow").touch()
        with broker_on(tmp_path, slow_at(tmp_path, "read")) as process:
            assert next_line(process) == "the disk takes its time\n"
            process.send_signal(number)
            assert process.wait(STOP_SECONDS) == 128 + number
        assert f"faircopy: {number.name} before it was ready" in broker.log
        broker.start()
        assert end_offset(broker.address, "t") == 10


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_makes_it_a_crash(tmp_path: Path, number: signal.Signals) -> None:
    with broker_on(tmp_path, slow_at(tmp_path, "sync")) as process:
        address = next_line(process).split()[-1]
        produce(address, "t", 10)
        opened = Producer({"bootstrap.servers": address, "transactional.id": "open", "log_level": 0})
        opened.init_transactions(60)
        opened.begin_transaction()
        opened.produce("t", b"x", partition=0)
        assert opened.flush(60) == 0
        (tmp_path / "slow").touch()
        process.send_signal(signal.SIGTERM)
        assert next_line(process) == "the disk takes its time\n"

        def has_ended() -> bool:
            process.send_signal(signal.SIGHUP)  # of a terminal that closes, which is no second request
            process.send_signal(number)
            return process.poll() is not None

        # When it has heard the first signal, only it knows: a second one that comes before is no second one.
        eventually(has_ended)
        assert process.returncode == 128 + number
    log = (tmp_path / "broker.log").read_text()
    assert "SIGTERM: stopping" in log
    assert f"faircopy: {number.name} while it was stopping" in log
    assert "Traceback" not in log
    with BrokerProcess(tmp_path) as broker:
        assert end_offset(broker.address, "t") == 10
        # As after a crash: the journals are read, and what was open goes on.
        assert re.search(r"; [1-9][\d,]* bytes of journals read, .* 0 aborted, 1 go on", broker.log)


PATIENT = """
from faircopy.cli import signals
from faircopy.cli.main import main

signals.SAME_SIGNAL_SECONDS = 3_600.0  # a slow machine may take long between two signals
main()
"""


def test_a_signal_that_is_sent_twice_is_one(tmp_path: Path) -> None:
    """By the kernel and the shell, when a terminal closes, or by timeout(1)."""
    arguments = ["start", "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0"]
    with broker_on(tmp_path, [sys.executable, "-c", PATIENT, *arguments]) as process:
        produce(next_line(process).split()[-1], "t", 10)
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGHUP, signal.SIGHUP):
            process.send_signal(number)
        assert process.wait(STOP_SECONDS) == 0


def test_the_publisher_outlives_signals_that_are_for_the_broker(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "plain.interval.ms=50") as broker:
        produce(broker.address, "t", 10)
        (publisher,) = eventually(lambda: psutil.Process(broker.pid).children())
        eventually(lambda: rows_files(broker))
        for number in SIGNALS:
            publisher.send_signal(number)
        before = len(rows_files(broker))
        produce(broker.address, "t", 10)
        eventually(lambda: len(rows_files(broker)) > before)
        assert publisher.is_running()
        broker.stop()
        assert not publisher.is_running()
