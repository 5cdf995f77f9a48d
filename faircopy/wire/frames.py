"""Frames: four bytes of length, big-endian, then that many bytes of request or response."""

from __future__ import annotations

from faircopy.errors import FaircopyError

LENGTH_BYTES = 4


class BadFrame(FaircopyError):
    """What a client sent is not a frame, or one too large. The connection can't be used any longer."""


def frame_bytes(prefix: bytes | bytearray | memoryview, bytes_max: int) -> int:
    """Bytes of the frame whose length stands in the four bytes `prefix`. Raises BadFrame."""
    size = int.from_bytes(prefix, "big", signed=True)
    if 0 < size <= bytes_max:
        return size
    hint = " (TLS, or HTTP, on a port that speaks plain Kafka?)" if size > 1 << 28 else ""
    raise BadFrame(f"a frame of {size} bytes was announced, at most {bytes_max} are accepted{hint}")
