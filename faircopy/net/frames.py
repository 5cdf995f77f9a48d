"""Frames, cut out of the bytes that one connection receives. No I/O and no clock: the caller passes the time.

The reader of the socket writes the next bytes into `room`, says how many there are (`take`), and then asks
for the complete frames (`next`, `pop`). Small frames come through one scratch buffer. A frame that arrives in
parts gets a buffer of its own, and the rest of it is received in place. That buffer grows with the bytes that
have arrived, never by the length that a client declares.
"""

from __future__ import annotations

from faircopy.wire.frames import LENGTH_BYTES, frame_bytes

SCRATCH_BYTES = 64 << 10
FIRST_FRAME_BYTES = 64 << 10
TRUSTED_FRAME_BYTES_MAX = 2 << 20

# Shared by all connections: an event loop fills it and hands it over for one connection at a time.
_SCRATCH = memoryview(bytearray(SCRATCH_BYTES))


class Frames:
    """The bytes that one connection has received and not yet handled.

    The next bytes are written into `room`; if it is empty, `grow` makes more. `received_bytes` is how much of
    a frame with a buffer of its own has arrived. `in_frame` says whether any part of a frame has arrived.
    `began_ms` is the time when that frame started to arrive, `arrived_ms` the time when the last bytes came.
    """

    __slots__ = (
        "_frame", "_frame_bytes", "_frame_bytes_max", "_paused_ms", "_paused_since_ms", "_trusted_bytes",
        "_unread", "arrived_ms", "began_ms", "in_frame", "is_paused", "received_bytes", "room",
    )  # fmt: skip

    def __init__(self, frame_bytes_max: int, now_ms: float) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._unread = b""
        self._frame: bytearray | None = None
        self._frame_bytes = 0  # the declared length of the frame that `next` has looked at
        # A client that has sent a large frame is trusted to send another: its buffer starts at that size.
        self._trusted_bytes = FIRST_FRAME_BYTES
        self._paused_ms = 0.0  # in total, since the frame began
        self._paused_since_ms = 0.0
        self.room = _SCRATCH
        self.received_bytes = 0
        self.in_frame = False
        self.is_paused = False
        self.arrived_ms = self.began_ms = now_ms

    # -- receiving -------------------------------------------------------------------------------------------

    def grow(self) -> memoryview:
        """Double the buffer of a frame that has filled it, up to the frame's declared size."""
        assert self._frame is not None
        larger = bytearray(min(2 * len(self._frame), self._frame_bytes))
        larger[: self.received_bytes] = self._frame
        self._frame = larger
        self.room = memoryview(larger)[self.received_bytes :]
        return self.room

    def take(self, count: int, now_ms: float) -> None:
        """`count` bytes, at least one, were written into `room`."""
        self.arrived_ms = now_ms
        if not self.in_frame:
            self.in_frame = True
            self.began_ms = now_ms
            self._paused_ms = 0.0
        if self._frame is not None:
            self.received_bytes += count
            self.room = self.room[count:]
        else:
            arrived = self.room[:count]
            self._unread = b"".join((self._unread, arrived)) if self._unread else bytes(arrived)

    # -- frames ----------------------------------------------------------------------------------------------

    def next(self) -> memoryview | None:
        """The next frame, without its length, if it is whole. It stays until `pop`. Raises BadFrame."""
        if self._frame is not None:
            is_whole = self.received_bytes == self._frame_bytes
            return memoryview(self._frame).toreadonly() if is_whole else None
        unread = self._unread
        if len(unread) < LENGTH_BYTES:
            return None
        self._frame_bytes = size = frame_bytes(unread[:LENGTH_BYTES], self._frame_bytes_max)
        if len(unread) < LENGTH_BYTES + size:
            self._receive_in_place()
            return None
        return memoryview(unread)[LENGTH_BYTES : LENGTH_BYTES + size]

    def pop(self) -> None:
        """Remove the frame that `next` has returned, since it is handled."""
        if self._frame is not None:
            trusted_bytes = min(self._frame_bytes, TRUSTED_FRAME_BYTES_MAX)
            self._trusted_bytes = max(self._trusted_bytes, trusted_bytes)
            self.drop()
        else:
            self._unread = self._unread[LENGTH_BYTES + self._frame_bytes :]
            self.in_frame = bool(self._unread)
        self.began_ms = self.arrived_ms
        self._paused_ms = 0.0

    def drop(self) -> None:
        """Forget all that has arrived."""
        self._unread = b""
        self._frame = None
        self.received_bytes = 0
        self.room = _SCRATCH
        self.in_frame = False

    def _receive_in_place(self) -> None:
        """Receive the rest of a frame in place."""
        arrived = self._unread[LENGTH_BYTES:]
        self._frame = bytearray(max(min(self._frame_bytes, self._trusted_bytes), len(arrived)))
        self._frame[: len(arrived)] = arrived
        self._unread = b""
        self.received_bytes = len(arrived)
        self.room = memoryview(self._frame)[len(arrived) :]

    # -- time ------------------------------------------------------------------------------------------------

    def pause(self, now_ms: float) -> None:
        """The broker stops reading."""
        self.is_paused = True
        self._paused_since_ms = now_ms

    def resume(self, now_ms: float) -> None:
        """The broker reads again."""
        self.is_paused = False
        self._paused_ms += now_ms - self._paused_since_ms

    @property
    def is_arriving(self) -> bool:
        """Whether the rest of a frame is to come, and the broker reads."""
        is_whole = self._frame is not None and self.received_bytes == self._frame_bytes
        return self.in_frame and not is_whole and not self.is_paused

    def is_slow_to_send(self, now_ms: float, grace_ms: float, bytes_per_second: int) -> bool:
        """Whether a frame arrives more slowly than this, and has done so for longer than the grace.

        The age of the frame counts, not the time of its last byte: otherwise a byte a minute would hold
        memory for ever. Time in which the broker does not read is not held against a client.
        """
        if not self.is_arriving:
            return False
        age_ms = now_ms - self.began_ms - self._paused_ms
        return age_ms > grace_ms + 1_000 * self.received_bytes / bytes_per_second
