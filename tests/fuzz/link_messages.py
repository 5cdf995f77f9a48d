"""What arrives on a link between brokers: a stream that is cut anywhere, or one frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from faircopy.replication.frames import FRAME_BYTES_MAX, LENGTH_BYTES, BadMessage, FrameReader
from faircopy.replication.message_format import decode, encode
from tests.fuzz.choices import Choices


def feed_link(data: bytes) -> bool:
    """The first byte says that the rest is one frame without its length, or of which size a stream's pieces
    are.
    """
    choices = Choices(data)
    piece_bytes, content = choices.number(), choices.rest()
    if not piece_bytes:
        return is_message(content)
    pieces = [content[at : at + piece_bytes] for at in range(0, len(content), piece_bytes)]
    frames, is_sound = received(pieces)
    if (frames, is_sound) != received([content]):
        raise RuntimeError("frames depend on how their bytes arrive")
    return all(map(is_message, frames)) and is_sound


def received(pieces: Iterable[bytes]) -> tuple[list[bytes], bool]:
    """The frames that come out of a stream, and whether all of it can be frames."""
    frames: list[bytes] = []
    try:
        frames.extend(map(bytes, taken(pieces)))
    except BadMessage:
        return frames, False
    return frames, True


def taken(pieces: Iterable[bytes]) -> Iterator[memoryview]:
    reader = FrameReader(FRAME_BYTES_MAX)
    for piece in pieces:
        yield from reader.take(piece)


def is_message(frame: bytes) -> bool:
    """Whether it is a message; then it is written as the same bytes."""
    try:
        message = decode(frame)
    except BadMessage:
        return False
    if encode(message)[LENGTH_BYTES:] != frame:
        raise RuntimeError(f"{message!r:.200} is written otherwise")
    return True
