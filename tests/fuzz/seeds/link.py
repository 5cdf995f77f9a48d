"""Seeds of a link between brokers: a message of each type."""

from __future__ import annotations

from faircopy.replication.frames import LENGTH_BYTES
from faircopy.replication.message_format import encode
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
from tests.fuzz.seeds.seed import Seeds

P, Q = b"p" * 20, b"q" * 20
EPOCHS = (EndOfEpoch(3, 4096), EndOfEpoch(12, 90_000))
MESSAGES: dict[str, Message] = {
    "challenge": Challenge(b"n" * 32),
    "hello": Hello(b"i" * 16, 2, 31, 12, 2, b"p" * 32),
    "compare": Comparison((ComparedJournal(P, 64, 90_000, EPOCHS), ComparedJournal(Q, 0, 0, ())), True),
    "aligned": Alignment((AlignedJournal(P, 80_000, 70_000, 75_000), AlignedJournal(Q, 0, 0, 0)), False),
    "data": Data(P, 80_000, 0xC0FFEE, b"bytes of a journal"),
    "ack": Acks((AckedJournal(P, 90_000, 80_000), AckedJournal(Q, 64, 64)), True),
    "mark": Marks(1_000_000, 12, {1: 57, 2: 31, 3: 88}, (MarkedJournal(P, 80_000), MarkedJournal(Q, 64))),
    "heartbeat": Marks(1_000_250, 12, {1: 57}, ()),
    "refusal": Refusal("the leader lacks what this broker has"),
}


def link_messages() -> Seeds:
    frames = {name: encode(message) for name, message in MESSAGES.items()}
    for name, frame in frames.items():
        yield name, b"\0" + frame[LENGTH_BYTES:]
    yield "in-pieces", b"\7" + b"".join(frames.values())
    yield "at-once", b"\xff" + frames["challenge"] + frames["hello"]
