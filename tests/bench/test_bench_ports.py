"""Ports that are held for servers: only they get them, also after one has ended."""

from __future__ import annotations

import socket

import pytest

from bench.systems.ports import HOST, HeldPorts


@pytest.fixture
def held() -> HeldPorts:
    return HeldPorts(2)


def test_ports_differ(held: HeldPorts) -> None:
    assert len(set(held.numbers)) == 2


def test_a_server_listens_and_its_successor_as_well(held: HeldPorts) -> None:
    for _ in range(3):
        for port in held.numbers:
            with (
                socket.create_server((HOST, port)) as server,
                socket.create_connection((HOST, port)) as client,
            ):
                server.accept()[0].close()
                assert client.recv(1) == b""


def test_nobody_else_takes_them(held: HeldPorts) -> None:
    for port in held.numbers:
        with socket.socket() as other, pytest.raises(OSError, match="Address already in use"):
            other.bind((HOST, port))


def test_ports_are_held_for_as_long_as_their_holder_is_there() -> None:
    held = HeldPorts(1)
    release = held.release
    assert release.alive
    del held
    assert not release.alive
