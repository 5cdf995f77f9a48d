"""Entries of a metadata journal, to the transactions."""

from __future__ import annotations

import json
from typing import Any, cast

from faircopy.journal.entry import Kind
from faircopy.storage.system import mount
from faircopy.transactions.metadata_journal import MetadataJournal, journal_identity
from tests.fuzz.choices import Choices
from tests.fuzz.journals import new_journal, new_store, segment_files
from tests.fuzz.memory import MemoryDisk
from tests.fuzz.odd_entries import NAMES, NUMBERS, TOPIC_IDS, TRANSACTIONS, odd_entries, refusals

METADATA_KINDS = [
    Kind.FENCE,
    Kind.BEGIN,
    Kind.ADD,
    Kind.PREPARE_COMMIT,
    Kind.PREPARE_ABORT,
    Kind.COMMITTED,
    Kind.ABORTED,
    Kind.FORGET,
    Kind.UNCLEAN,
    Kind.JOIN,
]
IS_JOINT = 2
IS_DURABLE = 4


def metadata_payload(choices: Choices, _kind: int) -> bytes:
    """A payload for an entry of a metadata journal: the fields of all kinds, since each takes its own."""
    if choices.number() % 16 == 0:
        return choices.some()
    places = [[choices.one_of(TOPIC_IDS), choices.one_of(NUMBERS), choices.one_of(NUMBERS)] for _ in range(2)]
    shape = choices.number()
    width = 2 + shape % 2
    payload = {
        "id": choices.one_of(NAMES),
        "timeout_ms": choices.one_of(NUMBERS),
        "at_ms": choices.one_of(NUMBERS),
        "pardoned": choices.one_of(NUMBERS),
        "told": choices.one_of(NUMBERS),
        "untold": choices.one_of(NUMBERS),
        "fence": choices.one_of(NUMBERS),
        "durable": bool(shape & IS_DURABLE),
        "all": bool(shape & IS_DURABLE),
        "partitions": [place[:width] for place in places],
    }
    if shape & IS_JOINT:
        payload |= joint_fields(choices, [place[:2] for place in places])
    return json.dumps(payload).encode()


def joint_fields(choices: Choices, places: list[list[object]]) -> dict[str, object]:
    """What entries of joint groups have besides."""
    others = [choices.one_of(TRANSACTIONS) for _ in range(choices.number() % 3)]
    return {
        "group": choices.one_of(NAMES),
        "run": choices.one_of(NAMES),
        "key": choices.one_of(NUMBERS),
        "member": choices.one_of(NAMES),
        "members": [1, 2],
        "joined": [[list(each), places] for each in others],
    }


def feed_metadata(data: bytes) -> bool:
    """A journal of transactions, recovered."""
    identity = journal_identity(0)
    written = odd_entries(Choices(data), METADATA_KINDS, metadata_payload)
    with mount(MemoryDisk(segment_files(written, identity))), refusals() as refused:
        MetadataJournal(0, new_journal(identity), new_store(), cast(Any, None)).open()
    return not refused
