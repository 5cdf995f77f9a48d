"""What holds within each message of a link. Nobody sends another one, and none is taken.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

from faircopy.replication.messages import (
    AckedJournal,
    Acks,
    AlignedJournal,
    Alignment,
    Challenge,
    ComparedJournal,
    Comparison,
    Data,
    Hello,
    MarkedJournal,
    Marks,
    Message,
    Refusal,
)

SET_ID_BYTES = 16
IDENTITY_BYTES = 20
NONCE_BYTES = 32
PROOF_BYTES = 32
CONTENT_BYTES_MAX = 256 << 10
REASON_BYTES_MAX = 1_000

POSITION_MAX = (1 << 63) - 1
INCARNATION_MAX = CLOCK_MS_MAX = POSITION_MAX
EPOCH_MAX = BROKER_MAX = (1 << 31) - 1
SEED_MAX = (1 << 32) - 1
VERSION_MAX = (1 << 16) - 1

Flaws = Iterator[str]
Named = ComparedJournal | AlignedJournal | AckedJournal | MarkedJournal


def flaw_of(message: Message) -> str | None:
    """What is wrong with a message; None if nothing is."""
    return next(_FLAWS[type(message)](message), None)


def _flaws_of_challenge(challenge: Challenge) -> Flaws:
    yield from _beyond("the version", challenge.version, VERSION_MAX)
    yield from _of_another_size("the nonce", challenge.nonce, NONCE_BYTES)


def _flaws_of_hello(hello: Hello) -> Flaws:
    yield from _of_another_size("the set id", hello.set_id, SET_ID_BYTES)
    yield from _beyond("the broker's id", hello.broker, BROKER_MAX)
    yield from _beyond("the incarnation", hello.incarnation, INCARNATION_MAX, least=1)
    yield from _beyond("the epoch", hello.epoch, EPOCH_MAX)
    yield from _beyond("the format level", hello.format_level, VERSION_MAX)
    yield from _of_another_size("the proof", hello.proof, PROOF_BYTES)


def _flaws_of_comparison(comparison: Comparison) -> Flaws:
    yield from _flaws_of_names(comparison.journals)
    for journal in comparison.journals:
        yield from _beyond("the end", journal.end, POSITION_MAX)
        yield from _beyond("the start", journal.start, journal.end)
        yield from _flaws_of_epochs(journal)


def _flaws_of_epochs(journal: ComparedJournal) -> Flaws:
    for each in journal.epochs:
        yield from _beyond("an epoch", each.epoch, EPOCH_MAX)
        yield from _beyond(f"the end of epoch {each.epoch}", each.end, journal.end)
    for former, later in pairwise(journal.epochs):
        if former.epoch >= later.epoch:
            yield f"epoch {later.epoch} comes after {former.epoch}"
        if former.end > later.end:
            yield f"epoch {later.epoch} ends at {later.end}, the one before at {former.end}"


def _flaws_of_alignment(alignment: Alignment) -> Flaws:
    yield from _flaws_of_names(alignment.journals)
    for journal in alignment.journals:
        yield from _beyond("the end", journal.end, POSITION_MAX)
        yield from _beyond("the synced position", journal.synced, journal.end)
        yield from _beyond("the mark", journal.mark, POSITION_MAX)


def _flaws_of_data(data: Data) -> Flaws:
    yield from _of_another_size("the journal's identity", data.identity, IDENTITY_BYTES)
    yield from _beyond("the seed", data.seed, SEED_MAX)
    yield from _beyond("the number of bytes", len(data.content), CONTENT_BYTES_MAX, least=1)
    yield from _beyond("the position", data.position, POSITION_MAX - len(data.content))


def _flaws_of_acks(acks: Acks) -> Flaws:
    yield from _flaws_of_names(acks.journals)
    for journal in acks.journals:
        yield from _beyond("the written position", journal.written, POSITION_MAX)
        yield from _beyond("the synced position", journal.synced, journal.written)


def _flaws_of_marks(marks: Marks) -> Flaws:
    yield from _beyond("the clock", marks.clock_ms, CLOCK_MS_MAX)
    yield from _beyond("the epoch", marks.epoch, EPOCH_MAX)
    for broker, incarnation in marks.in_sync.items():
        yield from _beyond("a broker's id", broker, BROKER_MAX)
        yield from _beyond("an incarnation", incarnation, INCARNATION_MAX)
    yield from _flaws_of_names(marks.journals)
    for journal in marks.journals:
        yield from _beyond("the durable position", journal.durable, POSITION_MAX)


def _flaws_of_refusal(refusal: Refusal) -> Flaws:
    try:
        size = len(refusal.reason.encode())
    except UnicodeEncodeError:
        yield "the reason has surrogates"
    else:
        yield from _beyond("the length of the reason", size, REASON_BYTES_MAX, least=1)


def _flaws_of_names(journals: Iterable[Named]) -> Flaws:
    named = set()
    for journal in journals:
        yield from _of_another_size("a journal's identity", journal.identity, IDENTITY_BYTES)
        if journal.identity in named:
            yield f"journal {journal.identity.hex()} is named twice"
        named.add(journal.identity)


def _beyond(what: str, number: int, most: int, *, least: int = 0) -> Flaws:
    if not least <= number <= most:
        yield f"{what} is {number}: {least} to {most} can be"


def _of_another_size(what: str, content: bytes, size: int) -> Flaws:
    if len(content) != size:
        yield f"{what} has {len(content)} bytes, and not {size}"


_FLAWS: dict[type, Callable[[Any], Flaws]] = {
    Challenge: _flaws_of_challenge,
    Hello: _flaws_of_hello,
    Comparison: _flaws_of_comparison,
    Alignment: _flaws_of_alignment,
    Data: _flaws_of_data,
    Acks: _flaws_of_acks,
    Marks: _flaws_of_marks,
    Refusal: _flaws_of_refusal,
}
