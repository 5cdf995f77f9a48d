"""Frames of a link between brokers, cut out of the bytes that arrive. All integers are little-endian.

    0  length  u32  bytes that follow: 1 to a bound
    4  type    u8   see message_format.py
    5  body

A length beyond the bound is refused before there is memory for the frame, and the buffer of a frame that
arrives in pieces grows with what has arrived. The bound is small until the peer has proven who it is.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from faircopy.errors import FaircopyError

LENGTH_BYTES = 4
FRAME_BYTES_MAX = 512 << 10
HANDSHAKE_FRAME_BYTES_MAX = 128


class BadMessage(FaircopyError):
    """What arrived on a link is no message of a broker. The link can't be used any longer."""


class FrameReader:
    """The bytes of one link that are not a whole frame yet.

    `frame_bytes_max` may be raised at any time.
    """

    __slots__ = ("_body", "_length", "frame_bytes_max")

    def __init__(self, frame_bytes_max: int = HANDSHAKE_FRAME_BYTES_MAX) -> None:
        self.frame_bytes_max = frame_bytes_max
        self._length = b""
        self._body = bytearray()

    def take(self, piece: bytes | memoryview) -> Iterator[memoryview]:
        """The frames that end in these bytes, each without its length. Take all of them before the next call.

        A frame that is whole in `piece` is a part of it, not a copy. Raises BadMessage; so does each later
        call.
        """
        rest = memoryview(piece).toreadonly()
        while len(rest):
            lacks = LENGTH_BYTES - len(self._length)
            self._length += rest[:lacks]
            rest = rest[lacks:]
            if len(self._length) < LENGTH_BYTES:
                return
            size = self._frame_bytes()
            if not self._body and len(rest) >= size:
                self._length = b""
                yield rest[:size]
                rest = rest[size:]
                continue
            lacks = size - len(self._body)
            self._body += rest[:lacks]
            rest = rest[lacks:]
            if len(self._body) == size:
                whole = memoryview(self._body).toreadonly()
                self._length, self._body = b"", bytearray()
                yield whole

    def _frame_bytes(self) -> int:
        size = int.from_bytes(self._length, "little")
        if 0 < size <= self.frame_bytes_max:
            return size
        raise BadMessage(f"a frame of {size} bytes was announced: 1 to {self.frame_bytes_max} can be")
