"""Sending a response that lies in files: straight from the page cache to the socket, on threads.

Large answers to Fetch go this way. They are never copied into the broker's memory: a reader costs little of
its CPU, and a slow one none of its memory.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections import deque
from collections.abc import Callable, Sequence

from faircopy.storage.disk import Disk
from faircopy.storage.file import FileRange
from faircopy.storage.system import Buffer

# A thread that has sent so much lets others have a turn: fsyncs of commits may be waiting.
TURN_BYTES = 4 << 20
# A client that reads on makes room sooner than the loop could be told to look for it.
PATIENCE_MS = 2

Piece = Buffer | FileRange


class FileSender:
    """One response on its way. `done(error)` is called on the loop, once, unless `stop` was called before.

    The socket is borrowed from a transport that has nothing left to send, and must send nothing meanwhile.
    """

    def __init__(
        self,
        descriptor: int,
        pieces: Sequence[Piece],
        disk: Disk,
        loop: asyncio.AbstractEventLoop,
        done: Callable[[BaseException | None], None],
    ) -> None:
        # A descriptor of our own: while a thread sends, the transport may close its one, and another file get
        # the same number.
        self._socket = socket.socket(fileno=socket.dup(descriptor))
        self._socket.setblocking(False)
        self._pieces = deque(piece for piece in pieces if len(piece))
        self._disk = disk
        self._loop = loop
        self._done = done
        self._is_on_thread = False
        self._is_stopped = False
        self._take_turn()

    def stop(self) -> None:
        """The client is gone, or must go: send no more."""
        self._is_stopped = True
        if not self._is_on_thread:
            self._close()

    def _take_turn(self) -> None:
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
        if self._socket.fileno() >= 0:
            self._loop.remove_writer(self._socket)
            self._socket.close()


def send_some(to: socket.socket, pieces: deque[Piece]) -> bool:
    """Send a turn's bytes, and drop from `pieces` what is sent; true if the socket stays full.

    Waits for the disk, and at most PATIENCE_MS at a time for the socket. Raises ConnectionError,
    StorageFailure.
    """
    left = TURN_BYTES
    while pieces and left > 0:
        try:
            sent = send_piece(to, pieces[0], min(left, len(pieces[0])), len(pieces) > 1)
        except BlockingIOError:
            if not gets_room(to):
                return True
            continue
        left -= sent
        rest = rest_of(pieces.popleft(), sent)
        if rest is not None:
            pieces.appendleft(rest)
    return False


def gets_room(full: socket.socket) -> bool:
    """Whether a full socket takes more within a moment."""
    poll = select.poll()
    poll.register(full, select.POLLOUT)
    return bool(poll.poll(PATIENCE_MS))


def send_piece(to: socket.socket, piece: Piece, size: int, has_more: bool) -> int:
    """Send the first bytes of a piece; return how many were taken."""
    if isinstance(piece, FileRange):
        return piece.file.send(to.fileno(), piece.position, size)
    # A head waits for what follows it, so that the two share a packet.
    return to.send(memoryview(piece)[:size], socket.MSG_MORE if has_more else 0)


def rest_of(piece: Piece, sent: int) -> Piece | None:
    """What is left of a piece of which so many bytes are sent."""
    if sent == len(piece):
        return None
    if isinstance(piece, FileRange):
        return FileRange(piece.file, piece.position + sent, piece.size - sent)
    return memoryview(piece)[sent:]
