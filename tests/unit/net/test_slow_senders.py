"""Clients that begin to send and do not go on: they hold neither memory nor the way of others for long."""

from __future__ import annotations

import asyncio
import struct
from typing import Any, cast

import pytest

from faircopy.net.connection import Connection
from faircopy.net.exchange import Exchange
from faircopy.net.server import SWEEP_SECONDS, Server
from faircopy.settings.table import Settings
from tests.simulation.network import LISTENER

MIB = 1 << 20
KIB = 1 << 10


class FakeTransport:
    """Notes whether it was aborted, and tells the connection as an event loop does."""

    def __init__(self, connection: Connection) -> None:
        self.is_aborted = False
        self.is_reading = True
        self._connection = connection

    def get_extra_info(self, _name: str) -> tuple[str, int]:
        return ("127.0.0.1", 1)

    def is_closing(self) -> bool:
        return self.is_aborted

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def abort(self) -> None:
        if not self.is_aborted:
            self.is_aborted = True
            self._connection.connection_lost(None)

    close = abort


class Stage:
    """A server with a clock of its own, whose connections are fed by hand."""

    def __init__(self, loop: Any) -> None:
        self.now_ms = 0.0
        self.handled: list[Exchange] = []
        settings = Settings(requests_in_flight_max_bytes=MIB, connections_idle_ms=10**9)
        self.server = Server(
            settings, cast(Any, self), loop, cast(Any, None), self._handle, lambda _number: None
        )

    def monotonic_ms(self) -> float:
        return self.now_ms

    def _handle(self, exchange: Exchange, _frame: memoryview) -> None:
        self.handled.append(exchange)

    def connect(self) -> tuple[Connection, FakeTransport]:
        connection = self.server.accept(LISTENER)
        transport = FakeTransport(connection)
        connection.connection_made(cast(asyncio.BaseTransport, transport))
        return connection, transport

    def wait(self, seconds: float, *drips: tuple[Connection, FakeTransport]) -> None:
        """Let time pass, sweep by sweep; those that drip send a byte before each."""
        for _ in range(round(seconds / SWEEP_SECONDS)):
            for connection, transport in drips:
                if not transport.is_aborted and transport.is_reading:
                    send(connection, transport, b"x")
            self.now_ms += SWEEP_SECONDS * 1_000
            self.server._sweep()


def send(connection: Connection, transport: FakeTransport, data: bytes) -> int:
    """Give bytes to a connection as long as it reads; returns how many it took."""
    sent = 0
    while sent < len(data) and transport.is_reading and not transport.is_aborted:
        room = connection.get_buffer(-1)
        piece = data[sent : sent + min(len(room), 16 * KIB)]
        room[: len(piece)] = piece
        connection.buffer_updated(len(piece))
        sent += len(piece)
    return sent


def frame(size: int) -> bytes:
    return struct.pack(">ihhih", size, 3, 9, 1, -1) + bytes(size - 10)


@pytest.fixture
def stage() -> Any:
    class Loop:
        def call_later(self, _seconds: float, _call: Any) -> None:
            return None

        def call_soon(self, call: Any) -> None:
            call()

    return Stage(Loop())


def test_a_byte_now_and_then_does_not_keep_a_frame(stage: Stage) -> None:
    slow = stage.connect()
    send(*slow, frame(200 * KIB)[: 100 * KIB])
    stage.wait(60, slow)
    assert not slow[1].is_aborted
    stage.wait(20, slow)
    assert slow[1].is_aborted
    assert stage.server.admission.receiving_bytes == 0


def test_a_few_bytes_of_a_length_are_a_frame_too(stage: Stage) -> None:
    slow = stage.connect()
    send(*slow, b"\0\0")
    stage.wait(70)
    assert slow[1].is_aborted


def test_a_slow_line_may_take_its_time(stage: Stage) -> None:
    slow = stage.connect()
    data = frame(30 * MIB)
    for at in range(0, len(data), 100 * KIB):
        assert send(*slow, data[at : at + 100 * KIB]) or slow[1].is_aborted
        stage.wait(5)
    assert not slow[1].is_aborted
    assert len(stage.handled) == 1


def test_idle_connections_and_those_that_wait_for_an_answer_are_left_alone(stage: Stage) -> None:
    idle, waiting = stage.connect(), stage.connect()
    send(*waiting, frame(100 * KIB))
    stage.wait(300)
    assert not idle[1].is_aborted and not waiting[1].is_aborted
    assert len(stage.handled) == 1


@pytest.mark.parametrize("is_whole_step", [False, True])
def test_frames_that_fill_the_memory_make_room_for_others(stage: Stage, is_whole_step: bool) -> None:
    """Whether they wait for more bytes, or stop right where the broker stops to read them."""
    size = 128 * KIB if is_whole_step else 100 * KIB
    hostile = [stage.connect() for _ in range(16)]
    for each in hostile:
        send(*each, frame(10 * MIB)[:size])
    assert stage.server.admission.is_crowded or not is_whole_step
    honest, transport = stage.connect()
    data = frame(900 * KIB)
    sent = 0
    for _ in range(60):
        sent += send(honest, transport, data[sent:])  # whenever the broker reads
        stage.wait(1, *hostile)
    assert not transport.is_aborted
    assert len(stage.handled) == 1


def test_memory_is_counted_as_bytes_arrive(stage: Stage) -> None:
    """Announcing is free: a thousand clients that send nothing else keep nobody from sending."""
    for _ in range(1_000):
        send(*stage.connect(), frame(10 * MIB)[:20])
    assert stage.server.admission.receiving_bytes < 20 * KIB
    honest = stage.connect()
    assert send(*honest, frame(900 * KIB)) == 900 * KIB + 4
    assert len(stage.handled) == 1
    assert stage.server.admission.receiving_bytes < 20 * KIB
