"""Processes that take turns to lead one directory, as a replica set of one: real brokers, over LMDB."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from faircopy.arbiter.backend import Attempt
from faircopy.arbiter.lmdb_backend import LmdbBackend
from faircopy.storage.versioned_map import ABSENT
from tests.broker_process import environment, eventually
from tests.child_process import next_line, start_child

SET = "orders"


class Member:
    """`faircopy start` with an arbiter. It is ready once it leads."""

    def __init__(self, directory: Path, broker: int, *arguments: str, data: str = "data") -> None:
        self.log_path = directory / f"{broker}.log"
        command = [sys.executable, "-m", "faircopy", "start", "--data-dir", str(directory / data)]
        command += ["--listen", "127.0.0.1:0", "--arbiter", f"lmdb:{directory / 'arbiter'}"]
        command += ["--replica-set", SET, "--broker-id", str(broker), *arguments]
        with self.log_path.open("a") as log:
            self.process = start_child(command, stdout=subprocess.PIPE, stderr=log, env=environment())

    def until_ready(self) -> str:
        """Its address, once it leads."""
        line = next_line(self.process)
        assert line.startswith("faircopy is ready on "), self.log
        return line.rsplit(" ", 1)[1].strip()

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def until_logged(self, text: str, times: int = 1) -> None:
        eventually(lambda: self.log.count(text) >= times)

    def end(self, number: signal.Signals = signal.SIGKILL) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Any]:
    """Starts members, and ends those that are left."""
    started: list[Member] = []

    def start(broker: int, *arguments: str, **options: str) -> Member:
        started.append(Member(tmp_path, broker, *arguments, **options))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
        each.process.wait()
        assert each.process.stdout is not None
        each.process.stdout.close()


def run(*arguments: str) -> str:
    """What a command prints."""
    done = faircopy(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def faircopy(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command that has ended."""
    command = [sys.executable, "-m", "faircopy", *arguments]
    return subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=120, check=False
    )


def at_the_arbiter(tmp_path: Path, *arguments: str) -> list[str]:
    return ["replicas", *arguments, "--arbiter", f"lmdb:{tmp_path / 'arbiter'}", "--replica-set", SET]


def test_the_second_serves_when_the_first_is_gone(tmp_path: Path, members: Any) -> None:
    first = members(1, "--new-set")
    address = first.until_ready()
    run("topics", "create", "red", "-b", address)
    before = json.loads(run("replicas", "status", "--json", "-b", address))
    second = members(2)
    second.until_logged("replica set orders is served by broker 1")
    first.end()
    address = second.until_ready()
    assert "red" in run("topics", "list", "-b", address)
    after = json.loads(run(*at_the_arbiter(tmp_path, "status", "--json")))
    assert (before["leader"], after["leader"]) == (1, 2)
    assert after["epoch"] > before["epoch"]
    assert after["set_id"] == before["set_id"]
    third = members(1)
    third.until_logged("replica set orders is served by broker 2")
    status = json.loads(run("replicas", "status", "--json", "-b", address))
    assert {each["broker"]: each["state"] for each in status["brokers"]} == {1: "waits", 2: "leads"}
    assert second.end(signal.SIGTERM) == 0
    third.until_ready()
    third.end()
    left = json.loads(run(*at_the_arbiter(tmp_path, "status", "--json")))
    assert [left["leader"], *(each["state"] for each in left["brokers"])] == [None, "away"]


def test_no_descriptor_of_a_life_is_in_the_next_one(tmp_path: Path, members: Any) -> None:
    broker = members(1, "--new-set")
    address = broker.until_ready()
    pid, data = broker.process.pid, str(tmp_path / "data")
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as client:
        assert files_in(data, pid)
        eventually(lambda: len(tcp_sockets(pid)) == 2)

        def look() -> None:
            broker.until_logged("is served by broker 1")
            assert files_in(data, pid) == [], "neither its files nor its lock"
            assert tcp_sockets(pid) == set()
            client.settimeout(60)
            assert client.recv(1) == b"", "its clients know that it is over"

        asyncio.run(end_the_lease(tmp_path, look))
    broker.until_logged("broker 1 leads replica set orders in epoch 2")
    broker.until_ready()
    assert broker.log.count("this process begins a new life") == 1
    assert broker.end(signal.SIGTERM) == 0


async def end_the_lease(tmp_path: Path, meanwhile: Callable[[], None]) -> None:
    """End the lease of broker 1, and do something while its next life waits, since there is another one."""
    backend = LmdbBackend(tmp_path / "arbiter" / SET, "test", asyncio.get_running_loop())
    found = dict(backend._entries())
    registered, lease = found["brokers/1"]
    await backend.revoke(lease)
    assert await backend.attempt(Attempt({"brokers/1": ABSENT}, {"brokers/1": registered.value})) is not None
    meanwhile()
    await backend.attempt(Attempt({}, {"brokers/1": None}))
    await backend.close()


def files_in(directory: str, pid: int) -> list[str]:
    """The files below a directory that a process has open."""
    return [name for name in open_files(pid) if name.startswith(directory)]


def tcp_sockets(pid: int) -> set[str]:
    """The TCP sockets of a process."""
    tables = (Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6"))
    tcp = {f"socket:[{line.split()[9]}]" for table in tables for line in table}
    return tcp & set(open_files(pid))


def open_files(pid: int) -> list[str]:
    """What the descriptors of a process are of."""
    found = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # it was closed meanwhile
            found.append(str(each.readlink()))
    return found


def test_what_is_refused_says_what_to_do(tmp_path: Path, members: Any) -> None:
    nobody = members(1)
    assert nobody.process.wait(60) == 1
    assert "start its first broker with --new-set" in nobody.log
    first = members(1, "--new-set")
    first.until_ready()
    assert first.end(signal.SIGTERM) == 0
    empty = members(2, "--new-set", data="other")
    assert empty.process.wait(60) == 1
    assert "is empty: is the volume of --data-dir attached?" in empty.log
    alone = faircopy("start", "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0")
    assert alone.returncode == 1
    assert "belongs to a replica set" in alone.stderr


def test_a_lost_record_is_made_again(tmp_path: Path, members: Any) -> None:
    first = members(1, "--new-set")
    address = first.until_ready()
    run("topics", "create", "red", "-b", address)
    set_id = json.loads(run("replicas", "status", "--json", "-b", address))["set_id"]
    refused = faircopy(*at_the_arbiter(tmp_path, "rebuild-record", str(tmp_path / "data")))
    assert "in use by another broker" in refused.stderr
    first.end()
    shutil.rmtree(tmp_path / "arbiter")
    again = members(1, "--new-set")
    assert again.process.wait(60) == 1
    assert "the arbiter has no record of replica set orders" in again.log
    data = str(tmp_path / "data")
    told = json.loads(run(*at_the_arbiter(tmp_path, "rebuild-record", data, "--json")))
    assert [each["set_id"] for each in told["directories"]] == [set_id]
    assert told["record"] is None
    run(*at_the_arbiter(tmp_path, "rebuild-record", data, "--from", data, "--yes"))
    address = members(1).until_ready()
    assert "red" in run("topics", "list", "-b", address)
    after = json.loads(run("replicas", "status", "--json", "-b", address))
    assert (after["set_id"], after["epoch"], after["unclean_epoch"]) == (set_id, 1002, 0)
