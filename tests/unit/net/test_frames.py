"""Frames come out whole and in order however their bytes arrive, and memory follows what has arrived."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.net.frames import FIRST_FRAME_BYTES, SCRATCH_BYTES, TRUSTED_FRAME_BYTES_MAX, Frames
from faircopy.wire.frames import LENGTH_BYTES, BadFrame

KIB = 1 << 10
MIB = 1 << 20
FRAME_BYTES_MAX = 8 * MIB

# Around all sizes at which something changes: buffers, their doubling, what is trusted.
EDGES = [1, LENGTH_BYTES, SCRATCH_BYTES, 2 * FIRST_FRAME_BYTES, TRUSTED_FRAME_BYTES_MAX]
SIZES = st.one_of(
    st.integers(1, 300),
    st.builds(lambda edge, more: max(edge + more, 1), st.sampled_from(EDGES), st.integers(-6, 6)),
    st.integers(1, 3 * MIB),
)
CHUNKS = st.lists(st.one_of(st.integers(1, 9), st.integers(1, SCRATCH_BYTES)), min_size=1, max_size=20)


def new_frames(now_ms: float = 0.0) -> Frames:
    return Frames(FRAME_BYTES_MAX, now_ms)


def framed(content: bytes) -> bytes:
    return len(content).to_bytes(LENGTH_BYTES, "big") + content


def contents(sizes: list[int]) -> list[bytes]:
    """Frames that differ, each from all others and within itself."""
    return [(number.to_bytes(3, "big") * (size // 3 + 1))[:size] for number, size in enumerate(sizes, 77)]


def give(frames: Frames, data: bytes, now_ms: float = 0.0) -> int:
    """Write what fits into the room there is, and return how much that was."""
    room = frames.room or frames.grow()
    count = min(len(room), len(data))
    room[:count] = data[:count]
    frames.take(count, now_ms)
    return count


def give_all(frames: Frames, data: bytes, now_ms: float = 0.0) -> list[bytes]:
    """Give all of this, and pop each frame as soon as it is whole."""
    found = []
    while data:
        data = data[give(frames, data, now_ms) :]
        while (frame := frames.next()) is not None:
            found.append(bytes(frame))
            frames.pop()
    return found


def held_bytes(frames: Frames) -> int:
    """Memory of the buffer of a frame that is received in parts."""
    return frames.received_bytes + len(frames.room) if frames.received_bytes else 0


@given(sizes=st.lists(SIZES, max_size=6), chunks=CHUNKS)
def test_any_chunking_gives_the_same_frames(sizes: list[int], chunks: list[int]) -> None:
    frames, sent, found = new_frames(), contents(sizes), []
    stream = b"".join(map(framed, sent))
    at = turn = 0
    while at < len(stream):
        end = min(at + chunks[turn % len(chunks)] * (1 + turn // 50), len(stream))
        found += give_all(frames, stream[at:end])
        at, turn = end, turn + 1
    assert found == sent
    assert not frames.in_frame


@given(sizes=st.lists(SIZES, min_size=1, max_size=4), chunk=st.integers(100, SCRATCH_BYTES))
def test_memory_is_bounded_by_what_has_arrived(sizes: list[int], chunk: int) -> None:
    """Twice what has arrived of a frame, or what its client has sent of one before."""
    frames, trusted_bytes = new_frames(), FIRST_FRAME_BYTES
    for content in contents(sizes):
        stream = framed(content)
        for at in range(0, len(stream), chunk):
            found = give_all(frames, stream[at : at + chunk])
            assert held_bytes(frames) <= max(trusted_bytes, 2 * frames.received_bytes)
            assert held_bytes(frames) <= len(content)
        assert found == [content]
        trusted_bytes = max(trusted_bytes, min(len(content), TRUSTED_FRAME_BYTES_MAX))


@given(size=st.integers(SCRATCH_BYTES, FRAME_BYTES_MAX))
def test_a_declared_length_is_not_believed(size: int) -> None:
    frames = new_frames()
    assert give_all(frames, framed(bytes(size))[:20]) == []
    assert held_bytes(frames) == FIRST_FRAME_BYTES


def test_a_frame_that_is_held_stays_until_it_is_popped() -> None:
    frames = new_frames()
    give(frames, framed(b"first") + framed(b"second"))
    assert bytes(frames.next() or b"") == bytes(frames.next() or b"") == b"first"
    frames.pop()
    assert bytes(frames.next() or b"") == b"second"
    frames.pop()
    assert frames.next() is None


def test_a_frame_that_was_popped_is_not_changed_by_what_comes_after_it() -> None:
    frames = new_frames()
    kept = []
    for content in contents([100, 200 * KIB, 100, 200 * KIB]):
        rest = framed(content)
        while rest:
            rest = rest[give(frames, rest) :]
            frame = frames.next()
        assert frame is not None
        frames.pop()
        kept.append((frame, content))
    assert all(bytes(frame) == content for frame, content in kept)


def test_a_large_frame_is_not_copied_again_when_it_is_whole() -> None:
    frames = new_frames()
    give_all(frames, framed(bytes(FIRST_FRAME_BYTES))[:20])
    buffer = frames.room.obj
    rest = bytes(FIRST_FRAME_BYTES - 16)
    while rest:
        rest = rest[give(frames, rest) :]
    frame = frames.next()
    assert frame is not None
    assert frame.obj is buffer
    assert frame.readonly


def test_a_whole_frame_has_no_room_for_more() -> None:
    frames = new_frames()
    rest = framed(bytes(200 * KIB))
    while rest:
        rest = rest[give(frames, rest) :]
        frames.next()
    assert not frames.room
    assert not frames.grow()


@pytest.mark.parametrize("size", [0, -1, FRAME_BYTES_MAX + 1])
def test_a_bad_length_is_told_after_the_frames_before_it(size: int) -> None:
    frames = new_frames()
    give(frames, framed(b"good") + size.to_bytes(LENGTH_BYTES, "big", signed=True) + b"more")
    assert bytes(frames.next() or b"") == b"good"
    frames.pop()
    for _ in range(2):
        with pytest.raises(BadFrame):
            frames.next()


@pytest.mark.parametrize(
    "sent", [framed(bytes(100))[:2], framed(bytes(100))[:50], framed(bytes(MIB))[: 100 * KIB]]
)
def test_what_is_dropped_leaves_nothing(sent: bytes) -> None:
    frames = new_frames()
    give_all(frames, sent)
    assert frames.in_frame
    frames.drop()
    assert (frames.in_frame, frames.received_bytes, frames.next()) == (False, 0, None)
    assert give_all(frames, framed(b"anew")) == [b"anew"]


# -- time ----------------------------------------------------------------------------------------------------


def test_a_frame_is_as_old_as_its_first_byte() -> None:
    frames = new_frames()
    give_all(frames, framed(bytes(100))[:2], 1_000)
    give_all(frames, b"\0", 50_000)
    assert (frames.began_ms, frames.arrived_ms) == (1_000, 50_000)
    assert not frames.is_slow_to_send(61_000, 60_000, 16 * KIB)
    assert frames.is_slow_to_send(61_001, 60_000, 16 * KIB)


def test_what_has_come_earns_time() -> None:
    frames = new_frames()
    give_all(frames, framed(bytes(MIB))[: 160 * KIB], 0)
    earned_ms = 1_000 * frames.received_bytes / (16 * KIB)
    assert not frames.is_slow_to_send(60_000 + earned_ms, 60_000, 16 * KIB)
    assert frames.is_slow_to_send(60_001 + earned_ms, 60_000, 16 * KIB)


def test_the_next_frame_begins_when_the_last_bytes_came() -> None:
    frames = new_frames()
    give_all(frames, framed(bytes(100))[:10], 1_000)
    give_all(frames, framed(bytes(100))[10:] + b"\0", 2_000)
    assert frames.in_frame
    assert frames.began_ms == 2_000


def test_a_client_is_not_late_while_the_broker_does_not_read() -> None:
    frames = new_frames()
    give_all(frames, framed(bytes(MIB))[:20], 0)
    frames.pause(10_000)
    assert not frames.is_slow_to_send(1_000_000, 5_000, 64 * KIB)
    frames.resume(510_000)
    assert not frames.is_slow_to_send(505_000, 5_000, 64 * KIB)
    assert frames.is_slow_to_send(506_000, 5_000, 64 * KIB)


def test_no_frame_and_a_whole_frame_are_not_late() -> None:
    frames = new_frames()
    assert not frames.is_slow_to_send(10**9, 0, 1)
    rest = framed(bytes(200 * KIB))
    while rest:
        rest = rest[give(frames, rest) :]
        frames.next()
    assert not frames.is_slow_to_send(10**9, 0, 1 << 40)
