"""Frames of a link come out whole and in order however their bytes arrive, in bounded memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.replication.frames import (
    FRAME_BYTES_MAX,
    HANDSHAKE_FRAME_BYTES_MAX,
    LENGTH_BYTES,
    BadMessage,
    FrameReader,
)
from faircopy.replication.message_format import decode, encode
from faircopy.replication.messages import Challenge, Data, Hello, Message
from tests.peak_memory import takes_less_than
from tests.unit.replication.some_messages import messages

KIB = 1 << 10
IDENTITY = bytes(20)


@given(st.lists(messages, max_size=6), st.data())
def test_frames_are_whole_wherever_the_stream_is_cut(sent: list[Message], data: st.DataObject) -> None:
    stream = b"".join(encode(message) for message in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    reader = FrameReader(FRAME_BYTES_MAX)
    frames = [frame for piece in pieces for frame in reader.take(piece)]
    assert [decode(frame) for frame in frames] == sent


def test_byte_by_byte() -> None:
    sent: list[Message] = [Challenge(bytes(32)), Data(IDENTITY, 7, 8, b"content")]
    reader = FrameReader(FRAME_BYTES_MAX)
    stream = b"".join(encode(message) for message in sent)
    frames = [frame for at in range(len(stream)) for frame in reader.take(stream[at : at + 1])]
    assert [decode(frame) for frame in frames] == sent


@pytest.mark.parametrize("length", [0, FRAME_BYTES_MAX + 1, (1 << 32) - 1])
def test_a_length_that_can_not_be_is_refused_for_good(length: int) -> None:
    reader = FrameReader(FRAME_BYTES_MAX)
    for piece in (length.to_bytes(LENGTH_BYTES, "little"), b"", b"more"):
        if piece:
            with pytest.raises(BadMessage, match=f"a frame of {length} bytes was announced"):
                list(reader.take(piece))


def test_only_short_frames_are_taken_from_who_is_not_proven() -> None:
    reader = FrameReader()
    hello = Hello(bytes(16), 1, 1, 1, 1, bytes(32))
    assert [decode(frame) for frame in reader.take(encode(hello))] == [hello]
    data = Data(IDENTITY, 0, 1, bytes(HANDSHAKE_FRAME_BYTES_MAX))
    with pytest.raises(BadMessage):
        list(reader.take(encode(data)))


def test_the_bound_is_raised_with_the_frame_that_proves() -> None:
    data = Data(IDENTITY, 0, 1, bytes(HANDSHAKE_FRAME_BYTES_MAX))
    reader = FrameReader()
    frames = reader.take(encode(Challenge(bytes(32))) + encode(data))
    next(frames)
    reader.frame_bytes_max = FRAME_BYTES_MAX
    assert [decode(frame) for frame in frames] == [data]


def test_a_frame_that_is_whole_is_not_copied() -> None:
    stream = bytearray(encode(Data(IDENTITY, 0, 1, b"before")) + b"\0")
    [frame] = FrameReader(FRAME_BYTES_MAX).take(memoryview(stream))
    stream[-7:-1] = b"behind"
    assert bytes(frame[-6:]) == b"behind"
    assert frame.readonly


def test_frames_stay_as_they_were_while_others_arrive() -> None:
    frame = encode(Data(IDENTITY, 0, 1, b"content"))
    reader = FrameReader(FRAME_BYTES_MAX)
    assert list(reader.take(frame[:9])) == []
    kept = list(reader.take(frame[9:] + frame[:9])) + list(reader.take(frame[9:]))
    assert [bytes(each) for each in kept] == [frame[LENGTH_BYTES:]] * 2


def test_an_announced_length_takes_no_memory() -> None:
    announced = FRAME_BYTES_MAX.to_bytes(LENGTH_BYTES, "little")

    def begin() -> None:
        for _ in range(100):
            assert list(FrameReader(FRAME_BYTES_MAX).take(announced + b"x")) == []

    assert takes_less_than(100 * KIB, begin, "announced lengths")
