"""Entries of a journal of group offsets, to the groups' offsets."""

from __future__ import annotations

import json
from typing import Any, cast

from faircopy.groups.group_metadata import GroupMetadata, MemberMetadata, encode_group
from faircopy.groups.group_offsets import GroupOffsets
from faircopy.groups.offsets_journals import OffsetsPartition
from faircopy.journal.entry import Kind
from faircopy.journal.identity import OFFSETS_TOPIC_ID, TopicIdPartition
from faircopy.storage.system import mount
from tests.fuzz.choices import Choices
from tests.fuzz.journal_entries import DATA_KINDS, data_payload
from tests.fuzz.journals import new_journal, new_store, segment_files
from tests.fuzz.memory import MemoryDisk
from tests.fuzz.odd_entries import NAMES, NUMBERS, TOPIC_IDS, odd_entries, refusals


def offsets_payload(choices: Choices, kind: int) -> bytes:
    """A payload for an entry of a journal of group offsets."""
    if kind not in (Kind.PLAIN, Kind.DRAFT):
        return data_payload(choices, kind)
    if choices.number() % 16 == 0:
        return choices.some()
    if choices.number() % 4 == 0:
        return group_payload(choices)
    row = [choices.one_of(TOPIC_IDS), *(choices.one_of(NUMBERS) for _ in range(3)), choices.one_of(NAMES), 0]
    return json.dumps({"group": choices.one_of(NAMES), "offsets": [row[: choices.number() % 8 + 2]]}).encode()


def group_payload(choices: Choices) -> bytes:
    """A payload that says who is in a group, with a member that may have other sizes than bytes."""
    name, said = choices.one_of(NAMES), choices.take(choices.number() % 8)
    member = MemberMetadata(name, None, name, name, 1, 1, ((name, said),), said)
    payload = encode_group(name, GroupMetadata(1, name, name, name, (member,)))
    return payload[: len(payload) - choices.number() % 4] if choices.number() % 2 else payload


def feed_offsets(data: bytes) -> bool:
    """A journal of group offsets, recovered with its table."""
    written = odd_entries(Choices(data), DATA_KINDS, offsets_payload)
    identity = TopicIdPartition(OFFSETS_TOPIC_ID, 0).identity
    with mount(MemoryDisk(segment_files(written, identity))), refusals() as refused:
        store, journal = new_store(), new_journal(identity)
        table = GroupOffsets(identity, journal, store)
        OffsetsPartition(0, journal, table, store, cast(Any, None)).open()
    return not refused
