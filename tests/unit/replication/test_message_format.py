"""Messages of a link: there and back, and whatever else arrives is refused as what it is."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.replication.frames import FRAME_BYTES_MAX, LENGTH_BYTES, BadMessage
from faircopy.replication.message_format import decode, encode
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
from faircopy.replication.soundness import CONTENT_BYTES_MAX, POSITION_MAX
from tests.peak_memory import takes_less_than
from tests.unit.replication.some_messages import messages

A, B = b"a" * 20, b"b" * 20
HELLO = Hello(bytes(16), 2, 31, 12, 2, bytes(32))
MIB = 1 << 20


def body_of(message: Message) -> bytes:
    """The frame, without its length."""
    return encode(message)[LENGTH_BYTES:]


def compared(start: int, end: int, *epochs: tuple[int, int]) -> Comparison:
    return Comparison((ComparedJournal(A, start, end, tuple(map(EndOfEpoch._make, epochs))),), True)


# -- there and back ------------------------------------------------------------------------------------------


@given(messages)
def test_what_is_sent_arrives(message: Message) -> None:
    frame = encode(message)
    assert int.from_bytes(frame[:LENGTH_BYTES], "little") == len(frame) - LENGTH_BYTES
    assert decode(memoryview(frame)[LENGTH_BYTES:]) == message


@given(messages, st.data())
def test_whatever_arrives_is_a_message_in_its_one_form_or_is_refused(
    message: Message, data: st.DataObject
) -> None:
    frame = bytearray(body_of(message))
    for _ in range(data.draw(st.integers(0, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.sampled_from([0, 1, 2, 127, 255]))
    cut = data.draw(st.integers(0, len(frame)) | st.just(len(frame)))
    taken_or_refused(bytes(frame[:cut]) + data.draw(st.just(b"") | st.binary(max_size=40)))


@given(st.integers(1, 8), st.binary(max_size=300))
def test_any_bytes_are_a_message_in_its_one_form_or_are_refused(number: int, body: bytes) -> None:
    taken_or_refused(bytes([number]) + body)


def taken_or_refused(frame: bytes) -> None:
    try:
        message = decode(frame)
    except BadMessage:
        return
    assert body_of(message) == frame


def test_the_layout_is_as_described() -> None:
    assert body_of(Challenge(b"n" * 32)) == b"\1FCYLINK1\1\0" + b"n" * 32
    assert body_of(HELLO) == b"\2" + bytes(16) + struct.pack("<IQIH", 2, 31, 12, 2) + bytes(32)
    journal = A + struct.pack("<QQI", 5, 90, 2) + struct.pack("<IQIQ", 3, 40, 7, 90)
    assert body_of(compared(5, 90, (3, 40), (7, 90))) == b"\3\1\1\0\0\0" + journal
    aligned = Alignment((AlignedJournal(A, 9, 8, 7),), False)
    assert body_of(aligned) == b"\4\0\1\0\0\0" + A + struct.pack("<QQQ", 9, 8, 7)
    assert body_of(Data(A, 9, 6, b"bytes")) == b"\5" + A + struct.pack("<QI", 9, 6) + b"bytes"
    assert body_of(Acks((AckedJournal(A, 9, 8),), True)) == b"\6\1\1\0\0\0" + A + struct.pack("<QQ", 9, 8)
    members = struct.pack("<IIQIQ", 2, 1, 57, 3, 88)
    marked = struct.pack("<QI", 1000, 12) + members + b"\1\0\0\0" + A + struct.pack("<Q", 9)
    assert body_of(Marks(1000, 12, {3: 88, 1: 57}, (MarkedJournal(A, 9),))) == b"\7" + marked
    assert body_of(Refusal("größer")) == b"\x08gr\xc3\xb6\xc3\x9fer"


def test_the_bytes_of_data_are_not_copied() -> None:
    frame = bytearray(body_of(Data(A, 0, 0, b"before")))
    message = decode(memoryview(frame))
    frame[-6:] = b"behind"
    assert isinstance(message, Data)
    assert message.content == b"behind"


# -- what is refused -----------------------------------------------------------------------------------------

UNSOUND: list[tuple[Message, str]] = [
    (Challenge(bytes(31)), "the nonce has 31 bytes"),
    (Challenge(bytes(32), 1 << 16), "the version is 65536"),
    (HELLO._replace(set_id=bytes(17)), "the set id has 17 bytes"),
    (HELLO._replace(broker=-1), "the broker's id is -1"),
    (HELLO._replace(incarnation=0), "the incarnation is 0"),
    (HELLO._replace(epoch=1 << 31), "the epoch is 2147483648"),
    (HELLO._replace(format_level=1 << 16), "the format level is 65536"),
    (HELLO._replace(proof=b""), "the proof has 0 bytes"),
    (compared(91, 90), "the start is 91"),
    (compared(0, 1 << 63), "the end is 9223372036854775808"),
    (compared(0, 90, (1, 91)), "the end of epoch 1 is 91"),
    (compared(0, 90, (1 << 31, 80)), "an epoch is 2147483648"),
    (compared(0, 90, (3, 40), (3, 90)), "epoch 3 comes after 3"),
    (compared(0, 90, (3, 40), (4, 39)), "epoch 4 ends at 39, the one before at 40"),
    (Comparison((ComparedJournal(A, 0, 1, ()), ComparedJournal(A, 0, 2, ())), True), "is named twice"),
    (Alignment((AlignedJournal(A, 8, 9, 0),), True), "the synced position is 9"),
    (Alignment((AlignedJournal(A, 1 << 63, 9, 0),), True), "the end is 9223372036854775808"),
    (Alignment((AlignedJournal(A, 9, 9, 1 << 63),), True), "the mark is 9223372036854775808"),
    (Alignment((AlignedJournal(A, 9, 9, 9), AlignedJournal(A, 9, 9, 9)), True), "is named twice"),
    (Data(A[1:], 0, 0, b"x"), "identity has 19 bytes"),
    (Data(A, 0, 1 << 32, b"x"), "the seed is 4294967296"),
    (Data(A, 0, 0, b""), "the number of bytes is 0"),
    (Data(A, 0, 0, bytes(CONTENT_BYTES_MAX + 1)), "the number of bytes is 262145"),
    (Data(A, POSITION_MAX, 0, b"x"), "the position is 9223372036854775807"),
    (Acks((AckedJournal(A, 8, 9),), False), "the synced position is 9"),
    (Acks((AckedJournal(A, 1 << 63, 9),), False), "the written position is 9223372036854775808"),
    (Acks((AckedJournal(A, 8, 8), AckedJournal(B, 8, 8), AckedJournal(A, 8, 8)), False), "is named twice"),
    (Marks(1 << 63, 1, {}, ()), "the clock is 9223372036854775808"),
    (Marks(0, 1 << 31, {}, ()), "the epoch is 2147483648"),
    (Marks(0, 1, {1 << 31: 5}, ()), "a broker's id is 2147483648"),
    (Marks(0, 1, {1: 1 << 63}, ()), "an incarnation is 9223372036854775808"),
    (Marks(0, 1, {}, (MarkedJournal(A, 1 << 63),)), "the durable position is 9223372036854775808"),
    (Marks(0, 1, {}, (MarkedJournal(A, 1), MarkedJournal(A, 1))), "is named twice"),
    (Marks(0, 1, {}, (MarkedJournal(A + A, 1),)), "identity has 40 bytes"),
    (Refusal(""), "the length of the reason is 0"),
    (Refusal(500 * "ß" + "s"), "the length of the reason is 1001"),
    (Refusal("a name\udcff"), "the reason has surrogates"),
]


@pytest.mark.parametrize(("message", "flaw"), UNSOUND, ids=[flaw for _, flaw in UNSOUND])
def test_what_is_unsound_is_not_sent(message: Message, flaw: str) -> None:
    with pytest.raises(ValueError, match=flaw):
        encode(message)


TWICE = struct.pack("<I", 2) + 2 * (A + struct.pack("<QQ", 8, 8))
MALFORMED = [
    (b"", "cut short"),
    (b"\0", "unknown type 0"),
    (b"\x09", "unknown type 9"),
    (b"\x08", "the length of the reason is 0"),
    (b"\x08" + 1001 * b"a", "the length of the reason is 1001"),
    (b"\x08a name\xed\xb3\xbf", "REFUSAL is malformed: its reason is no UTF-8"),
    (b"\1FCYLINK1\1\0" + bytes(31), "CHALLENGE is malformed: it is cut short"),
    (b"\1GET / HT\1\0" + bytes(32), "no faircopy broker"),
    (body_of(HELLO) + b"\0", "HELLO is malformed: it has 1 bytes too many"),
    (b"\2" + bytes(16) + struct.pack("<IQIH", 1 << 31, 1, 1, 1) + bytes(32), "the broker's id"),
    (b"\3\2" + bytes(4), "its flags are 0x2"),
    (b"\3\1\2\0\0\0" + A + struct.pack("<QQI", 0, 0, 0), "announces 2 rows"),
    (b"\3\1\1\0\0\0" + A + struct.pack("<QQI", 0, 9, 1 << 31), "announces 2147483648 rows"),
    (b"\3\1\1\0\0\0" + A + struct.pack("<QQI", 10, 9, 0), "the start is 10"),
    (b"\4\xff" + bytes(4), "its flags are 0xff"),
    (b"\4\0\xff\xff\xff\xff" + bytes(44), "announces 4294967295 rows"),
    (b"\5" + A + struct.pack("<QI", 0, 0), "the number of bytes is 0"),
    (b"\5" + A + struct.pack("<QI", 0, 0) + bytes(CONTENT_BYTES_MAX + 1), "262145"),
    (b"\5" + A + struct.pack("<QI", POSITION_MAX, 0) + b"x", "the position is"),
    (b"\6\0" + TWICE, "is named twice"),
    (b"\6\0" + TWICE + b"\0", "1 bytes too many"),
    (b"\7" + struct.pack("<QIIIQIQI", 0, 1, 2, 3, 1, 2, 1, 0), "not in order"),
    (b"\7" + struct.pack("<QIIIQIQI", 0, 1, 2, 3, 1, 3, 1, 0), "not in order"),
    (b"\7" + struct.pack("<QIII", 0, 1, 0, 1), "announces 1 rows"),
]


@pytest.mark.parametrize(("frame", "says"), MALFORMED, ids=[says for _, says in MALFORMED])
def test_what_is_malformed_is_refused(frame: bytes, says: str) -> None:
    with pytest.raises(BadMessage, match=says):
        decode(frame)


def test_what_no_frame_can_hold_is_not_sent() -> None:
    journals = tuple(AckedJournal(number.to_bytes(20, "big"), 1, 1) for number in range(15_000))
    with pytest.raises(ValueError, match="540006 bytes are too many for a frame"):
        encode(Acks(journals, False))
    assert decode(body_of(Acks(journals[:14_000], False))) == Acks(journals[:14_000], False)


def test_a_count_takes_no_memory_before_it_is_believed() -> None:
    frame = b"\6\0\xff\xff\xff\x7f" + bytes(36)

    def refuse() -> None:
        with pytest.raises(BadMessage, match="announces 2147483647 rows"):
            decode(frame)

    assert takes_less_than(MIB // 4, refuse, "a large count")


def test_the_longest_message_takes_bounded_memory() -> None:
    epochs = tuple(EndOfEpoch(number, number) for number in range((FRAME_BYTES_MAX - 46) // 12))
    frame = body_of(Comparison((ComparedJournal(A, 0, POSITION_MAX, epochs),), True))
    assert takes_less_than(12 * MIB, lambda: decode(frame), "many epochs")
