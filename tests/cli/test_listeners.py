"""Where a broker listens, and which address its clients are told."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from faircopy.api.describe_cluster import SCHEMA as DESCRIBE_CLUSTER
from faircopy.api.find_coordinator import SCHEMA as FIND_COORDINATOR
from faircopy.api.metadata import SCHEMA as METADATA
from faircopy.client.connection import BrokerConnection
from faircopy.client.errors import ConnectionFailed
from faircopy.net.listeners import CannotListen, Listener, bind_all
from faircopy.wire.address import Address, parse_address
from tests.broker_process import STOP_SECONDS, environment
from tests.child_process import READY_SECONDS, next_line, start_child
from tests.requirements import missing
from tests.unit.net.kubernetes import KUBERNETES

HAS_IPV6 = Path("/proc/net/if_inet6").exists() and bool(Path("/proc/net/if_inet6").read_text())


def refusal(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=READY_SECONDS, env=environment(), check=False
    )


# -- a broker ------------------------------------------------------------------------------------------------


@contextmanager
def running(directory: Path, count: int, *arguments: str, **variables: str) -> Iterator[list[Address]]:
    """A broker with so many listeners, and the addresses on which it says that it is ready."""
    command = [sys.executable, "-m", "faircopy", "start", "--data-dir", str(directory / "data"), *arguments]
    process = start_child(command, stdout=subprocess.PIPE, env=environment() | variables, cwd=directory)
    assert process.stdout is not None
    try:
        lines = [next_line(process) for _ in range(count)]
        assert all(line.startswith("faircopy is ready on ") for line in lines), lines
        yield [parse_address(line.split()[-1]) for line in lines]
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)
        process.stdout.close()


def told(address: Address) -> list[Address]:
    """Where a broker says that it is to be found: by Metadata, FindCoordinator, DescribeCluster."""
    with BrokerConnection(str(address)) as connection:
        (metadata,) = connection.ask(METADATA, 9, {"topics": []}).brokers
        old = connection.ask(FIND_COORDINATOR, 3, {"key": "g", "key_type": 0})
        (found,) = connection.ask(
            FIND_COORDINATOR, 4, {"coordinator_keys": ["g"], "key_type": 0}
        ).coordinators
        (described,) = connection.ask(DESCRIBE_CLUSTER, 0, {}).brokers
    return [Address(each.host, each.port) for each in (metadata, old, found, described)]


def ask(host: str, port: int) -> Any:
    return set(told(Address(host, port)))


def test_clients_are_told_the_address_that_they_came_to(tmp_path: Path) -> None:
    with running(tmp_path, 1, "--listen", "0.0.0.0:0") as ((host, port),):
        assert host == "0.0.0.0"
        for each in ("127.0.0.1", "127.0.0.2"):
            assert ask(each, port) == {Address(each, port)}


def test_ipv6_hosts_stand_in_brackets(tmp_path: Path) -> None:
    if not HAS_IPV6:
        missing("this machine has no IPv6")
    with running(tmp_path, 1, "--listen", "[::]:0") as ((host, port),):
        assert host == "::"
        assert ask("::1", port) == {Address("::1", port)}
        assert ask("127.0.0.1", port) == {Address("127.0.0.1", port)}
        arguments = ("--data-dir", str(tmp_path / "other"), "--listen", f"[::1]:{port}")
        command = [sys.executable, "-m", "faircopy", "start", *arguments]
        refused = refusal(command)
        assert f"can't listen on [::1]:{port}: " in refused.stderr


def test_clients_are_told_the_address_of_their_listener(tmp_path: Path) -> None:
    arguments = ("--listen", "internal://127.0.0.1:0,external://127.0.0.1:0,all://0.0.0.0:0")
    advertised = "internal://broker:9092,external://log1.example.org:9094"
    with running(tmp_path, 3, *arguments, "--set", f"advertised.listeners={advertised}") as (
        inner,
        outer,
        every,
    ):
        assert ask(*inner) == {Address("broker", 9092)}
        assert ask(*outer) == {Address("log1.example.org", 9094)}
        assert ask("127.0.0.3", every.port) == {Address("127.0.0.3", every.port)}


def test_an_address_that_is_taken_leaves_the_others_free(tmp_path: Path) -> None:
    with socket.socket() as taken, socket.socket() as free:
        for each in (taken, free):
            each.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        listen = f"a://127.0.0.1:{port},b://127.0.0.1:{taken.getsockname()[1]}"
        command = [sys.executable, "-m", "faircopy", "start", "--listen", listen]
        command += ["--data-dir", str(tmp_path / "data")]
        refused = refusal(command)
        assert refused.returncode == 1
        assert f"can't listen on 127.0.0.1:{taken.getsockname()[1]}: " in refused.stderr
        assert not (tmp_path / "data").exists()


def test_a_host_that_can_not_be_is_told(tmp_path: Path) -> None:
    for host in ("no-such-host.invalid", "a" * 64):
        with pytest.raises(CannotListen, match=f"can't listen on {host}:1: "):
            bind_all((Listener("default", Address(host, 1), None),))
        with pytest.raises(ConnectionFailed, match=f"can't reach a broker on {host}:1: "):
            BrokerConnection(f"{host}:1")


# -- variables of other programs -----------------------------------------------------------------------------


def test_variables_of_kubernetes_services_are_no_settings(tmp_path: Path) -> None:
    with running(tmp_path, 1, "--listen", "127.0.0.1:0", **KUBERNETES) as (address,):
        assert address.port
