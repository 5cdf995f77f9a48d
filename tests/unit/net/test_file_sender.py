"""A response from files arrives whole and in order, whatever its pieces and however slowly it is read."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.errors import FaircopyError
from faircopy.net.file_sender import TURN_BYTES, FileSender, Piece
from faircopy.net.gate import Gate
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.file import File, FileRange
from tests.unit.idle import CountedPool, idle

CONTENT = os.urandom(3 * TURN_BYTES)
RANGES = st.tuples(st.integers(0, len(CONTENT)), st.integers(0, len(CONTENT)))
PIECES = st.lists(st.one_of(st.binary(max_size=100), RANGES), max_size=6)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> File:
    made = File(tmp_path_factory.mktemp("file") / "content", create=True)
    made.write([CONTENT], 0)
    return made


async def received(end: socket.socket, size: int) -> bytes:
    loop = asyncio.get_running_loop()
    end.setblocking(False)
    found = bytearray()
    while len(found) < size:
        found += await loop.sock_recv(end, 300_000)
    return bytes(found)


async def send(pieces: list[Piece], near: socket.socket, disk: DiskPool) -> BaseException | None:
    loop = asyncio.get_running_loop()
    result: asyncio.Future[BaseException | None] = loop.create_future()
    FileSender(near.fileno(), pieces, disk, loop, result.set_result)
    return await result


@given(pieces=PIECES)
def test_what_is_received_is_what_was_sent(file: File, pieces: list[bytes | tuple[int, int]]) -> None:
    sent: list[Piece] = [
        piece if isinstance(piece, bytes) else FileRange(file, min(piece), abs(piece[1] - piece[0]))
        for piece in pieces
    ]
    expected = b"".join(
        piece if isinstance(piece, bytes) else CONTENT[min(piece) : max(piece)] for piece in pieces
    )

    async def main() -> None:
        disk = DiskPool(asyncio.get_running_loop(), threads=1)
        near, far = socket.socketpair()
        error, found = await asyncio.gather(send(sent, near, disk), received(far, len(expected)))
        assert error is None
        assert found == expected
        disk.close()
        near.close()
        assert far.recv(1) == b"", "the sender keeps no descriptor"
        far.close()

    asyncio.run(main())


def test_a_file_that_ends_too_early_is_an_error(file: File) -> None:
    async def main() -> None:
        disk = DiskPool(asyncio.get_running_loop(), threads=1)
        near, far = socket.socketpair()
        error = await send([b"head", FileRange(file, len(CONTENT) - 5, 10)], near, disk)
        assert isinstance(error, FaircopyError)
        assert far.recv(100) == b"head" + CONTENT[-5:]
        disk.close()
        near.close()
        far.close()

    asyncio.run(main())


def test_a_client_that_goes_is_an_error(file: File) -> None:
    async def main() -> None:
        disk = DiskPool(asyncio.get_running_loop(), threads=1)
        near, far = socket.socketpair()
        sending = asyncio.ensure_future(send([FileRange(file, 0, len(CONTENT))], near, disk))
        await received(far, 1)
        far.close()
        assert isinstance(await sending, ConnectionError)
        disk.close()
        near.close()

    asyncio.run(main())


def test_a_sender_that_is_stopped_lets_go_of_its_socket(file: File) -> None:
    async def main() -> None:
        disk = CountedPool(asyncio.get_running_loop(), threads=1)
        near, far = socket.socketpair()
        sender = FileSender(
            near.fileno(), [FileRange(file, 0, len(CONTENT))], disk, asyncio.get_running_loop(), print
        )
        near.close()
        await idle(disk)  # it waits for room
        sender.stop()
        while far.recv(1 << 20):
            pass
        disk.close()
        far.close()

    asyncio.run(main())


async def read_while_it_comes(end: socket.socket, disk: CountedPool) -> bytes:
    """All that is sent without anything else happening."""
    found = bytearray()
    while True:
        await asyncio.sleep(0)  # the loop looks at its sockets
        await idle(disk)
        try:
            arrived = end.recv(1 << 20)
        except BlockingIOError:
            return bytes(found)
        if not arrived:
            return bytes(found)
        found += arrived


def test_a_sender_takes_no_turn_while_the_gate_is_closed(file: File) -> None:
    async def main() -> None:
        loop, sure, doubt = asyncio.get_running_loop(), False, True
        disk = CountedPool(loop, threads=1)
        near, far = socket.socketpair()
        far.setblocking(False)
        is_closed = sure
        gate = Gate(lambda: is_closed)
        errors: list[BaseException | None] = []
        FileSender(near.fileno(), [FileRange(file, 0, len(CONTENT))], disk, loop, errors.append, gate)
        await idle(disk)  # it waits for room
        is_closed = doubt
        found = await read_while_it_comes(far, disk)
        assert 0 < len(found) < TURN_BYTES
        gate.let_go()
        assert await read_while_it_comes(far, disk) == b""
        is_closed = sure
        gate.let_go()
        assert found + await read_while_it_comes(far, disk) == CONTENT
        assert errors == [None]
        disk.close()
        near.close()
        far.close()

    asyncio.run(main())


def test_a_sender_that_is_stopped_at_the_gate_lets_go_of_its_socket(file: File) -> None:
    async def main() -> None:
        disk = CountedPool(asyncio.get_running_loop(), threads=1)
        near, far = socket.socketpair()
        gate = Gate(lambda: True)
        sender = FileSender(
            near.fileno(), [FileRange(file, 0, 5)], disk, asyncio.get_running_loop(), print, gate
        )
        near.close()
        assert list(gate.waiting) == [sender]
        sender.stop()
        assert not gate.waiting
        assert far.recv(1) == b""
        disk.close()
        far.close()

    asyncio.run(main())
