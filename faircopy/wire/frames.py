"""Frames: four bytes of length, big-endian, then that many bytes of request or response."""

from __future__ import annotations

from faircopy.errors import FaircopyError

LENGTH_BYTES = 4


class BadFrame(FaircopyError):
    """The bytes that a client sent are not a frame, or a frame that is too large. The connection can't be
    used any longer."""


def frame_bytes(prefix: bytes | bytearray | memoryview, bytes_max: int) -> int:
    """The size of a frame, from its four bytes of length. Raises BadFrame if it is more than `bytes_max`."""
    size = int.from_bytes(prefix, "big", signed=True)
    if 0 < size <= bytes_max:
        return size
    hint = " (TLS, or HTTP, on a port that speaks plain Kafka?)" if size > 1 << 28 else ""
    raise BadFrame(f"a frame of {size} bytes was announced, at most {bytes_max} are accepted{hint}")
