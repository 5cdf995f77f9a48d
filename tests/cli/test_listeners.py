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
from faircopy.net.listeners import CannotListen, Listener, bind_all, parse_listeners
from faircopy.settings.sources import load_settings
from faircopy.settings.table import BadSetting
from faircopy.wire.address import Address, BadAddress, parse_address
from tests.broker_process import STOP_SECONDS, environment
from tests.child_process import READY_SECONDS, next_line, start_child

HAS_IPV6 = Path("/proc/net/if_inet6").exists() and bool(Path("/proc/net/if_inet6").read_text())


# -- addresses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["127.0.0.1:9092", "log1.example.org:1", "[::1]:65535", "[fe80::1%eth0]:9092"]
)
def test_an_address_is_printed_as_it_is_read(text: str) -> None:
    assert str(parse_address(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "nowhere", ":9092", "host:", "host:http", "host:65536", "host:-1", "host:٣", "::1:9092", "[::1]",
     "[x]:1", "[::1:9092", "a b:1", "http://host:1", "host/x:1", "host:1:2", "ho\x1bst:1"],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadAddress, match="give HOST:PORT"):
        parse_address(text)
    with pytest.raises(ConnectionFailed, match="give HOST:PORT"):
        BrokerConnection(text)


# -- settings ------------------------------------------------------------------------------------------------


def listeners(listen: str, advertised: str = "") -> tuple[Listener, ...]:
    return parse_listeners(
        load_settings(overrides=[f"listeners={listen}", f"advertised.listeners={advertised}"])
    )


def test_one_listener_needs_no_name() -> None:
    assert listeners("h:1") == (Listener("default", Address("h", 1), None),)
    assert listeners("h:1", "log1:2") == (Listener("default", Address("h", 1), Address("log1", 2)),)


def test_several_listeners_have_names() -> None:
    found = listeners("internal://0.0.0.0:9092, EXTERNAL://[::]:9094", "external://log1:19094")
    assert found == (
        Listener("internal", Address("0.0.0.0", 9092), None),
        Listener("external", Address("::", 9094), Address("log1", 19094)),
    )


@pytest.mark.parametrize(
    ("listen", "advertised", "message"),
    [
        ("", "", "give HOST:PORT"),
        ("h:1,", "", "give HOST:PORT"),
        ("h:1", "nowhere", "advertised.listeners is 'nowhere': give HOST:PORT"),
        ("h:1", "log1:0", "port 0"),
        ("h:1", "0.0.0.0:9092", "stands for all addresses"),
        ("h:1", "[::]:9092", "stands for all addresses"),
        ("h:1", "0:9092", "stands for all addresses"),
        ("h:1", "other://log1:1", "no listener is named 'other'"),
        ("a://h:1,b://h:2", "log1:1", "no listener is named 'default'"),
        ("a://h:1,A://h:2", "", "two are named 'a'"),
        ("h:1,h:2", "", "two are named 'default'"),
        ("a://h:1,b://h:1", "", "two are on h:1"),
        ("a://h:1", "a://x:1,a://y:1", "two are named 'a'"),
        ("a b://h:1", "", "a name has letters, digits"),
    ],
)
def test_listeners_that_can_not_be_are_refused(listen: str, advertised: str, message: str) -> None:
    with pytest.raises(BadSetting, match=message.replace("[", r"\[")):
        listeners(listen, advertised)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "0"])
def test_all_addresses_are_told_as_the_one_that_a_client_came_to(host: str) -> None:
    listener = Listener("default", Address(host, 9092), None)
    assert listener.address_for(("10.0.0.7", 9092)) == Address("10.0.0.7", 9092)
    assert listener.address_for(("::ffff:10.0.0.7", 9092, 0, 0)) == Address("10.0.0.7", 9092)
    assert listener.address_for(("2001:db8::7", 9092, 0, 0)) == Address("2001:db8::7", 9092)
    assert listener._replace(advertised=Address("log1", 1)).address_for(("10.0.0.7", 9092)) == Address(
        "log1", 1
    )


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


@pytest.mark.skipif(not HAS_IPV6, reason="this machine has no IPv6")
def test_ipv6_hosts_stand_in_brackets(tmp_path: Path) -> None:
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

SERVICE = {
    "FAIRCOPY_SERVICE_HOST": "10.0.171.239",
    "FAIRCOPY_SERVICE_PORT": "9092",
    "FAIRCOPY_SERVICE_PORT_KAFKA": "9092",
    "FAIRCOPY_SERVICE_PORT_KAFKA_OUTSIDE": "9094",
    "FAIRCOPY_PORT": "tcp://10.0.171.239:9092",
    "FAIRCOPY_PORT_9092_TCP": "tcp://10.0.171.239:9092",
    "FAIRCOPY_PORT_9092_TCP_PROTO": "tcp",
    "FAIRCOPY_PORT_9092_TCP_PORT": "9092",
    "FAIRCOPY_PORT_9092_TCP_ADDR": "10.0.171.239",
    "FAIRCOPY_PORT_53_UDP_ADDR": "10.0.171.239",
}
OTHERS = {name.replace("FAIRCOPY_", "FAIRCOPY_HEADLESS_2_"): value for name, value in SERVICE.items()}


def test_variables_of_kubernetes_services_are_no_settings(tmp_path: Path) -> None:
    assert load_settings(environment=SERVICE | OTHERS) == load_settings()
    with running(tmp_path, 1, "--listen", "127.0.0.1:0", **SERVICE, **OTHERS) as (address,):
        assert address.port


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("FAIRCOPY_PORT", "9092"),
        ("FAIRCOPY_LISTEN_PORT", "9092"),
        ("FAIRCOPY_LISTENERS_PORT", "9092"),
        ("FAIRCOPY_SERVICE", "x"),
        ("FAIRCOPY_PORT_TCP", "9092"),
        ("FAIRCOPY_HOST", "127.0.0.1"),
    ],
)
def test_a_mistyped_variable_is_still_refused(variable: str, value: str) -> None:
    with pytest.raises(BadSetting, match="unknown setting"):
        load_settings(environment=SERVICE | {variable: value})
