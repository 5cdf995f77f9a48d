"""Messages of a link, byte for byte, each after the length of its frame (frames.py). Little-endian.

    CHALLENGE   0 type u8 = 1 | 1 magic "FCYLINK1" | 9 version u16 | 11 nonce 32 bytes
    HELLO       0 type u8 = 2 | 1 set id 16 bytes | 17 broker u32 | 21 incarnation u64 | 29 epoch u32
                33 format level u16 | 35 proof 32 bytes
    COMPARE     0 type u8 = 3 | 1 flags u8, 1: the last one | 2 count u32 | 6 journals, each
                    0 identity 20 bytes | 20 start u64 | 28 end u64 | 36 count u32 | 40 epochs, each
                        0 epoch u32 | 4 end u64
    ALIGNED     0 type u8 = 4 | 1 flags u8, 1: the last one | 2 count u32 | 6 journals, each
                    0 identity 20 bytes | 20 end u64 | 28 synced u64 | 36 mark u64
    DATA        0 type u8 = 5 | 1 identity 20 bytes | 21 position u64 | 29 seed u32 | 33 bytes of the file
    ACK         0 type u8 = 6 | 1 flags u8, 1: short of space | 2 count u32 | 6 journals, each
                    0 identity 20 bytes | 20 written u64 | 28 synced u64
    MARK        0 type u8 = 7 | 1 steady clock u64, ms | 9 epoch u32 | 13 count u32
                17 in-sync brokers, in order, each
                    0 broker u32 | 4 incarnation u64
                then count u32, then journals, each
                    0 identity 20 bytes | 20 durable u64
    REFUSAL     0 type u8 = 8 | 1 reason, 1 to 1,000 bytes of UTF-8

Brokers and epochs are below 2^31, all else of 64 bits below 2^63. Each message has one form: what is read is
written as the same bytes.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from itertools import pairwise
from struct import Struct
from typing import Any

from faircopy.replication.body import COUNT, Body
from faircopy.replication.frames import FRAME_BYTES_MAX, LENGTH_BYTES, BadMessage
from faircopy.replication.messages import (
    AckedJournal,
    Acks,
    AlignedJournal,
    Alignment,
    Challenge,
    ComparedJournal,
    Comparison,
    Data,
    EndOfEpoch,
    Hello,
    MarkedJournal,
    Marks,
    Message,
    Refusal,
)
from faircopy.replication.soundness import CONTENT_BYTES_MAX, flaw_of


class MessageType(IntEnum):
    """The first byte of a frame."""

    CHALLENGE = 1
    HELLO = 2
    COMPARE = 3
    ALIGNED = 4
    DATA = 5
    ACK = 6
    MARK = 7
    REFUSAL = 8


MAGIC = b"FCYLINK1"
Part = bytes | bytearray | memoryview

_BYTE = Struct("<B")
_CHALLENGE = Struct("<8sH32s")
_HELLO = Struct("<16sIQIH32s")
_COMPARED = Struct("<20sQQ")
_EPOCH = Struct("<IQ")
_ALIGNED = Struct("<20sQQQ")
_DATA = Struct("<20sQI")
_ACKED = Struct("<20sQQ")
_MARK = Struct("<QI")
_MEMBER = Struct("<IQ")
_MARKED = Struct("<20sQ")
assert (_CHALLENGE.size, _HELLO.size, _DATA.size, _MARK.size) == (42, 66, 32, 12)
assert (_COMPARED.size, _ALIGNED.size, _ACKED.size, _MARKED.size) == (36, 44, 36, 28)
assert _EPOCH.size == _MEMBER.size == 12
assert _BYTE.size + _DATA.size + CONTENT_BYTES_MAX <= FRAME_BYTES_MAX


def encode(message: Message) -> bytes:
    """The frame of a message. Raises ValueError if the message has a flaw, or is too long for a frame."""
    flaw = flaw_of(message)
    if flaw is not None:
        raise ValueError(f"{type(message).__name__} can't be sent: {flaw}")
    type_, parts_of = _WRITERS[type(message)]
    parts = [_BYTE.pack(type_), *parts_of(message)]
    size = sum(map(len, parts))
    if size > FRAME_BYTES_MAX:
        raise ValueError(f"{type(message).__name__} can't be sent: {size} bytes are too many for a frame")
    return b"".join((size.to_bytes(LENGTH_BYTES, "little"), *parts))


def decode(frame: bytes | memoryview) -> Message:
    """The message in a frame, which is given without its length. Raises BadMessage.

    The bytes of DATA are not copied: they are a part of `frame`.
    """
    body = Body(frame)
    (number,) = body.fields(_BYTE)
    if number not in _READERS:
        raise BadMessage(f"a message of the unknown type {number}")
    try:
        message = _READERS[number](body)
        body.ensure_is_over()
    except BadMessage as error:
        raise BadMessage(f"{MessageType(number).name} is malformed: {error}") from None
    flaw = flaw_of(message)
    if flaw is not None:
        raise BadMessage(f"{MessageType(number).name} is malformed: {flaw}")
    return message


# -- writing -------------------------------------------------------------------------------------------------


def _parts_of_challenge(challenge: Challenge) -> Iterator[Part]:
    yield _CHALLENGE.pack(MAGIC, challenge.version, challenge.nonce)


def _parts_of_hello(hello: Hello) -> Iterator[Part]:
    yield _HELLO.pack(*hello)


def _parts_of_comparison(comparison: Comparison) -> Iterator[Part]:
    yield _BYTE.pack(comparison.is_last)
    yield COUNT.pack(len(comparison.journals))
    for identity, start, end, epochs in comparison.journals:
        yield _COMPARED.pack(identity, start, end)
        yield from _rows(_EPOCH, epochs)


def _parts_of_alignment(alignment: Alignment) -> Iterator[Part]:
    yield _BYTE.pack(alignment.is_last)
    yield from _rows(_ALIGNED, alignment.journals)


def _parts_of_data(data: Data) -> Iterator[Part]:
    yield _DATA.pack(data.identity, data.position, data.seed)
    yield data.content


def _parts_of_acks(acks: Acks) -> Iterator[Part]:
    yield _BYTE.pack(acks.is_short)
    yield from _rows(_ACKED, acks.journals)


def _parts_of_marks(marks: Marks) -> Iterator[Part]:
    yield _MARK.pack(marks.clock_ms, marks.epoch)
    yield from _rows(_MEMBER, sorted(marks.in_sync.items()))
    yield from _rows(_MARKED, marks.journals)


def _parts_of_refusal(refusal: Refusal) -> Iterator[Part]:
    yield refusal.reason.encode()


def _rows(layout: Struct, rows: Iterable[tuple[Any, ...]]) -> Iterator[bytes]:
    packed = [layout.pack(*row) for row in rows]
    yield COUNT.pack(len(packed))
    yield from packed


_WRITERS: dict[type, tuple[MessageType, Callable[[Any], Iterator[Part]]]] = {
    Challenge: (MessageType.CHALLENGE, _parts_of_challenge),
    Hello: (MessageType.HELLO, _parts_of_hello),
    Comparison: (MessageType.COMPARE, _parts_of_comparison),
    Alignment: (MessageType.ALIGNED, _parts_of_alignment),
    Data: (MessageType.DATA, _parts_of_data),
    Acks: (MessageType.ACK, _parts_of_acks),
    Marks: (MessageType.MARK, _parts_of_marks),
    Refusal: (MessageType.REFUSAL, _parts_of_refusal),
}


# -- reading -------------------------------------------------------------------------------------------------


def _read_challenge(body: Body) -> Challenge:
    magic, version, nonce = body.fields(_CHALLENGE)
    if magic != MAGIC:
        raise BadMessage(f"it begins with {magic!r}: the peer is no faircopy broker")
    return Challenge(nonce, version)


def _read_hello(body: Body) -> Hello:
    return Hello(*body.fields(_HELLO))


def _read_comparison(body: Body) -> Comparison:
    is_last = body.flag(_BYTE)
    count = body.count(_COMPARED.size + COUNT.size)
    return Comparison(tuple(_read_compared(body) for _ in range(count)), is_last)


def _read_compared(body: Body) -> ComparedJournal:
    identity, start, end = body.fields(_COMPARED)
    return ComparedJournal(identity, start, end, tuple(map(EndOfEpoch._make, body.rows(_EPOCH))))


def _read_alignment(body: Body) -> Alignment:
    is_last = body.flag(_BYTE)
    return Alignment(tuple(map(AlignedJournal._make, body.rows(_ALIGNED))), is_last)


def _read_data(body: Body) -> Data:
    identity, position, seed = body.fields(_DATA)
    return Data(identity, position, seed, body.rest())


def _read_acks(body: Body) -> Acks:
    is_short = body.flag(_BYTE)
    return Acks(tuple(map(AckedJournal._make, body.rows(_ACKED))), is_short)


def _read_marks(body: Body) -> Marks:
    clock_ms, epoch = body.fields(_MARK)
    members = list(body.rows(_MEMBER))
    if any(former >= later for (former, _), (later, _) in pairwise(members)):
        raise BadMessage("its in-sync brokers are not in order")
    return Marks(clock_ms, epoch, dict(members), tuple(map(MarkedJournal._make, body.rows(_MARKED))))


def _read_refusal(body: Body) -> Refusal:
    try:
        return Refusal(str(body.rest(), "utf-8"))
    except UnicodeDecodeError as error:
        raise BadMessage(f"its reason is no UTF-8: {error.reason}") from None


_READERS: dict[int, Callable[[Body], Message]] = {
    MessageType.CHALLENGE: _read_challenge,
    MessageType.HELLO: _read_hello,
    MessageType.COMPARE: _read_comparison,
    MessageType.ALIGNED: _read_alignment,
    MessageType.DATA: _read_data,
    MessageType.ACK: _read_acks,
    MessageType.MARK: _read_marks,
    MessageType.REFUSAL: _read_refusal,
}
