"""Sending a response that lies in files: straight from the page cache to the socket, on threads.

Large Fetch responses are sent this way. They are never copied into the broker's memory: a reader costs little
of the broker's CPU, and a slow reader takes none of its memory.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections import deque
from collections.abc import Callable, Sequence

from faircopy.net.gate import Gate
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.file import FileRange
from faircopy.storage.system import SEND_MORE, Buffer

# A thread that has sent this much gives others a turn: fsyncs of commits may be waiting.
TURN_BYTES = 4 << 20
# A client that keeps reading makes room sooner than the event loop could be told to look for it.
PATIENCE_MS = 2

Piece = Buffer | FileRange


class FileSender:
    """A response that is being sent. `done(error)` is called once, on the loop, unless `stop` was called
    before.

    The socket belongs to a transport that has nothing left to send, and that must send nothing meanwhile.

    If there is a gate and it is closed, no further turn is taken until it opens. A turn that has begun goes
    on, as do bytes that a transport has taken: the gate was open when they were handed over.
    """

    def __init__(
        self,
        descriptor: int,
        pieces: Sequence[Piece],
        disk: DiskPool,
        loop: asyncio.AbstractEventLoop,
        done: Callable[[BaseException | None], None],
        gate: Gate | None = None,
    ) -> None:
        # A duplicate descriptor: while a thread sends, the transport may close its own, and another file may
        # get the same number.
        self._socket = socket.socket(fileno=socket.dup(descriptor))
        self._socket.setblocking(False)
        self._pieces = deque(piece for piece in pieces if len(piece))
        self._disk = disk
        self._loop = loop
        self._done = done
        self._gate = gate
        self._is_on_thread = False
        self._is_stopped = False
        self._take_turn()

    def stop(self) -> None:
        """Send no more, because the client has disconnected or is about to be disconnected."""
        self._is_stopped = True
        if not self._is_on_thread:
            self._close()

    def gate_opened(self) -> None:
        """Send on."""
        self._take_turn()

    def _take_turn(self) -> None:
        if self._gate is not None and self._gate.is_closed:
            self._gate.hold(self)
            return
        self._is_on_thread = True
        self._disk.submit(send_some, (self._socket, self._pieces), self._turn_is_over)

    def _turn_is_over(self, is_full: bool | None, error: BaseException | None) -> None:
        self._is_on_thread = False
        if self._is_stopped:
            self._close()
        elif error is not None or not self._pieces:
            self._close()
            self._done(error)
        elif is_full:
            self._loop.add_writer(self._socket, self._has_room)
        else:
            self._take_turn()

    def _has_room(self) -> None:
        self._loop.remove_writer(self._socket)
        self._take_turn()

    def _close(self) -> None:
        if self._gate is not None:
            self._gate.forget(self)
        if self._socket.fileno() >= 0:
            self._loop.remove_writer(self._socket)
            self._socket.close()


def send_some(to: socket.socket, pieces: deque[Piece]) -> bool:
    """Send one turn's bytes, and remove what was sent from `pieces`; true if the socket stays full.

    Waits for the disk, and at most PATIENCE_MS at a time for the socket. Raises ConnectionError,
    StorageFailure.
    """
    left = TURN_BYTES
    while pieces and left > 0:
        try:
            sent = send_piece(to, pieces[0], min(left, len(pieces[0])), len(pieces) > 1)
        except BlockingIOError:
            if not wait_for_room(to):
                return True
            continue
        left -= sent
        rest = rest_of(pieces.popleft(), sent)
        if rest is not None:
            pieces.appendleft(rest)
    return False


def wait_for_room(full: socket.socket) -> bool:
    """Wait a moment for a full socket; true if it has room again."""
    poll = select.poll()
    poll.register(full, select.POLLOUT)
    return bool(poll.poll(PATIENCE_MS))


def send_piece(to: socket.socket, piece: Piece, size: int, has_more: bool) -> int:
    """Send the first bytes of a piece; return how many were taken."""
    if isinstance(piece, FileRange):
        return piece.file.send(to.fileno(), piece.position, size)
    # The head waits for the data that follows it, so that they share a packet.
    return to.send(memoryview(piece)[:size], SEND_MORE if has_more else 0)


def rest_of(piece: Piece, sent: int) -> Piece | None:
    """The rest of a piece after its first `sent` bytes; None if nothing is left."""
    if sent == len(piece):
        return None
    if isinstance(piece, FileRange):
        return FileRange(piece.file, piece.position + sent, piece.size - sent)
    return memoryview(piece)[sent:]
