"""Entries of a journal for people to read: one by one, or those of one transaction along its reverse list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from faircopy.catalogue.change import part_of_change, show_change
from faircopy.copier.fold import (
    DISCARD_PAYLOAD,
    FORGET_PAYLOAD,
    PREPARED_PAYLOAD,
    TRIM_PAYLOAD,
    read_apply,
)
from faircopy.errors import FaircopyError
from faircopy.journal.entry import NO_TRANSACTION, NOWHERE, Entry, Kind, TransactionId
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.reading import Recovered
from faircopy.journal.segment import SUFFIX
from faircopy.journal.segments import Segments
from faircopy.journal.torn_tail import ensure_torn
from faircopy.storage.paths import is_directory, list_files
from faircopy.transactions import metadata_entry
from faircopy.verify.journal_files import JournalFiles, open_segment
from faircopy.wire.batch import HEADER_BYTES, read_header

FIRST_METADATA_KIND = Kind.BEGIN
FIRST_CATALOGUE_KIND = Kind.CHANGE
UNREADABLE = "unreadable"


class NoJournal(FaircopyError):
    """There is no journal at a path."""


class ShownEntry(NamedTuple):
    """One entry: its file and byte, its header, and the meaning of its payload."""

    path: Path
    byte: int
    entry: Entry
    says: dict[str, Any]

    @property
    def transaction(self) -> TransactionId | None:
        """The transaction that the entry belongs to; None if it belongs to none."""
        return None if self.entry.transaction == NO_TRANSACTION else self.entry.transaction

    @property
    def is_change(self) -> bool:
        """Whether it is a write of the catalogue, which can be read."""
        return self.entry.kind == Kind.CHANGE and UNREADABLE not in self.says

    @property
    def kind(self) -> str:
        """The name of its kind, or "kind N" for one that this version does not know."""
        return Kind(self.entry.kind).name if self.entry.kind in set(Kind) else f"kind {self.entry.kind}"


def open_to_show(path: Path) -> JournalFiles:
    """The journal in a directory, or the part of one that is in a file. Raises NoJournal, DamagedJournal."""
    paths = list_files(path, SUFFIX) if is_directory(path) else [path]
    if not paths:
        raise NoJournal(f"{path} holds no journal: give a file *{SUFFIX}, or the directory of one journal")
    return JournalFiles(Segments(path, [open_segment(each) for each in paths]))


def shown_entries(files: JournalFiles, start: int | None = None) -> Iterator[ShownEntry]:
    """The sound entries from position `start` on, up to `files.end`, the first place without one."""
    for recovered in files.entries(files.start_position if start is None else start):
        yield shown(files, recovered)


def changes_of(entries: Iterator[ShownEntry], key: str) -> Iterator[ShownEntry]:
    """The writes of one key of the catalogue, without what they say of others."""
    for each in entries:
        part = part_of_change(each.says, key) if each.is_change else {}
        if part:
            yield each._replace(says=part)


def shown(files: JournalFiles, recovered: Recovered) -> ShownEntry:
    """An entry with its place in a file."""
    entry = recovered.entry
    segment = files.segments.holding(entry.position)
    try:
        says = dict(meaning(entry, recovered.payload))
    except Exception as error:  # a fault of a broker wrote it: the others are shown, too
        says = {UNREADABLE: repr(error)}
    return ShownEntry(segment.path, segment.at(entry.position), entry, says)


def meaning(entry: Entry, payload: memoryview) -> dict[str, Any]:
    """The meaning of a payload, without the data of clients."""
    if entry.kind >= FIRST_CATALOGUE_KIND:
        return show_change(payload)
    if entry.kind >= FIRST_METADATA_KIND:
        return metadata_entry.read_json(payload)
    match entry.kind:
        case Kind.DRAFT | Kind.PLAIN:
            return batch_meaning(payload) if is_batch(payload, entry) else offsets_meaning(payload)
        case Kind.PREPARED:
            drafts, finished = PREPARED_PAYLOAD.unpack(payload)
            return {"drafts": drafts, "finished": finished}
        case Kind.APPLY:
            order = read_apply(payload, entry.transaction)
            return order._asdict() | {"lead": str(order.lead)}
        case Kind.DISCARD:
            fence, finished = DISCARD_PAYLOAD.unpack(payload)
            return {"fence": fence, "finished": finished}
        case Kind.TRIM:
            return {"start_offset": TRIM_PAYLOAD.unpack(payload)[0]}
        case Kind.FORGET_PRODUCERS:
            return {"producers": [fields[0] for fields in FORGET_PAYLOAD.iter_unpack(payload)]}
    return {}


def is_batch(payload: memoryview, entry: Entry) -> bool:
    """Whether a payload is a record batch; the journals of group offsets hold JSON."""
    if len(payload) < HEADER_BYTES:
        return False
    header = read_header(payload)
    return header.magic == 2 and header.size_bytes == len(payload) and header.records == entry.records


def batch_meaning(payload: memoryview) -> dict[str, Any]:
    """The part of a record batch's header about its producer; empty if there is no producer."""
    header = read_header(payload)
    if header.producer_id < 0:
        return {}
    return {"producer": header.producer_id, "epoch": header.producer_epoch, "sequence": header.base_sequence}


def offsets_meaning(payload: memoryview) -> dict[str, Any]:
    """The group and the offsets that an entry of an offsets partition stores."""
    stored: dict[str, Any] = json.loads(bytes(payload))
    return {
        "group": stored["group"],
        "offsets": {f"{topic}-{partition}": offset for topic, partition, offset, *_ in stored["offsets"]},
    }


def unclean_end(files: JournalFiles) -> str | None:
    """What is wrong with the place where reading ended; None if a journal may end like this."""
    try:
        ensure_torn(files.segments, files.end, known_durable=files.start_position)
    except DamagedJournal as error:
        return str(error)
    return None


class ReverseList(NamedTuple):
    """One transaction's entries: decisions, the newest first, and its drafts, from the head back. `missing`
    is a position that the list leads to, but where these files have none of the transaction's drafts.
    """

    entries: list[ShownEntry]
    missing: int | None


def follow(files: JournalFiles, transaction: TransactionId) -> ReverseList:
    """Walk a transaction's reverse linked list (I3)."""
    own = [each for each in shown_entries(files) if each.entry.transaction == transaction]
    others = [each for each in reversed(own) if each.entry.kind != Kind.DRAFT]
    drafts = {each.entry.position: each for each in own if each.entry.kind == Kind.DRAFT}
    walked: list[ShownEntry] = []
    at = max(drafts, default=promised_head(others))
    while at in drafts:
        walked.append(drafts.pop(at))
        at = walked[-1].entry.previous
    return ReverseList(others + walked, at if at != NOWHERE else None)


def promised_head(decisions: list[ShownEntry]) -> int:
    """The head that PREPARED names, for a transaction without drafts in these files."""
    heads = [each.entry.previous for each in decisions if each.entry.kind == Kind.PREPARED]
    return heads[0] if heads else NOWHERE


def transaction_of(text: str) -> TransactionId:
    """A TxId from its text `pid.epoch.number`. Raises ValueError."""
    producer_id, epoch, number = map(int, text.split("."))
    return TransactionId(producer_id, epoch, number)
