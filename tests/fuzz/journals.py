"""Journals: segment files with edits, to recovery, and sound entries with odd fields, to the folds.

An edit that a disk can make is found by its checksum. An entry whose checksum fits was written by a broker,
since the checksum is salted: odd fields there are a bug of some broker, or of a newer one. So the folds may
refuse them as loudly as they like, but must not hang, take all memory, or read what is not there.
"""

from __future__ import annotations

import contextlib
import json
import random
import struct
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

from crc32c import crc32c

from faircopy.copier.fold import (
    APPLY_PAYLOAD,
    DISCARD_PAYLOAD,
    FORGET_PAYLOAD,
    PREPARED_PAYLOAD,
    TRIM_PAYLOAD,
)
from faircopy.copier.log_copier import LogCopier
from faircopy.datalog.log import DataLog
from faircopy.errors import FaircopyError
from faircopy.groups.group_metadata import GroupMetadata, MemberMetadata, encode_group
from faircopy.groups.group_offsets import GroupOffsets
from faircopy.groups.offsets_journals import OFFSETS_TOPIC
from faircopy.journal.entry import HEADER_BYTES, NO_TRANSACTION, Entry, Kind, TransactionId
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.format_4 import encode_header
from faircopy.journal.identity import TopicIdPartition
from faircopy.journal.journal import Journal
from faircopy.journal.options import Durability, JournalOptions
from faircopy.journal.reverse_list import ReverseWalk, read_from_disk
from faircopy.journal.segment import HEADER_BYTES as SEGMENT_HEADER_BYTES
from faircopy.journal.segment import encode_segment_header, file_name
from faircopy.partition.name import PartitionName
from faircopy.partition.opening import recover
from faircopy.partition.partition import Partition
from faircopy.storage.failures import StorageFailure
from faircopy.storage.state_store import StateStore
from faircopy.storage.system import mount
from faircopy.transactions.metadata_journal import MetadataJournal, journal_identity
from faircopy.wire.records import NewRecord, build_batch
from tests.fuzz.choices import Choices
from tests.fuzz.memory import MemoryDisk, edited
from tests.simulation.store import Contents, SimulatedStore
from tests.upgrade import format_3

PARTITION = TopicIdPartition(bytes(range(16)), 1)
IDENTITY = PARTITION.identity
JOURNAL = Path("/data/journal/0")
LOG = Path("/data/log/0")
SALT = 0x0123456789ABCDEF
SEED = crc32c(struct.pack("<Q", SALT))
SEGMENT_BYTES = 1 << 20
ENTRIES_MAX = 64


class Written(NamedTuple):
    """An entry as it stands in a journal."""

    entry: Entry
    payload: bytes

    @property
    def encoded(self) -> bytes:
        return encode_header(self.entry, self.payload, SEED) + self.payload

    @property
    def old_bytes(self) -> bytes:
        """As format 3 has it: as many as now."""
        return format_3.encode_header(self.entry, self.payload, SEED) + self.payload


class Writer:
    """Puts entries one after another, with nothing but their places and checksums right."""

    def __init__(self) -> None:
        self.written: list[Written] = []
        self.position = 0

    def add(
        self,
        kind: int,
        payload: bytes,
        *,
        records: int = 0,
        previous: int = -1,
        transaction: TransactionId = NO_TRANSACTION,
        durable: int = 0,
    ) -> None:
        length = HEADER_BYTES + len(payload)
        entry = Entry(kind, self.position, length, records, 0, previous, transaction, durable)
        self.written.append(Written(entry, payload))
        self.position = entry.end


def segment_files(
    written: Iterable[Written], identity: bytes, bases: Iterable[int] = (0,), old: Container[int] = ()
) -> dict[Path, bytes]:
    """The files of a journal whose segments begin at these positions, some of them as format 3 has them."""
    files = {
        base: (format_3.encode_segment_header if base in old else encode_segment_header)(base, SALT, identity)
        for base in bases
    }
    for each in written:
        base = max(base for base in files if base <= each.entry.position)
        files[base] += each.old_bytes if base in old else each.encoded
    return {JOURNAL / file_name(base): content for base, content in files.items()}


def new_journal(identity: bytes) -> Journal:
    """A journal that is only recovered: what it would write with is not there."""

    def fail(error: BaseException) -> None:
        raise error

    options = JournalOptions(Durability.FSYNC, SEGMENT_BYTES, lambda: SALT, fail)
    return Journal(JOURNAL, identity, cast(Any, None), cast(Any, None), options)


def new_store(contents: Contents | None = None) -> StateStore:
    """A state store that is only read."""
    return SimulatedStore(contents or Contents(), cast(Any, None), random.Random(0), lambda: None)


# -- files with edits ----------------------------------------------------------------------------------------


COMMITTED = TransactionId(7, 0, 1)


def sound_entries() -> list[Written]:
    """A journal of twelve entries: batches, two transactions, one of them discarded, and a trim."""
    writer = Writer()
    batch = build_batch([NewRecord(b"value", b"key", 1_000)])
    committed, aborted = COMMITTED, TransactionId(8, 0, 2)
    for _ in range(2):
        writer.add(Kind.PLAIN, batch, records=1)
    first = writer.position
    writer.add(Kind.DRAFT, batch, records=1, transaction=committed)
    writer.add(Kind.DRAFT, batch * 3, records=1, transaction=aborted, durable=first)
    writer.add(Kind.DRAFT, batch, records=1, transaction=committed, previous=first)
    writer.add(Kind.PREPARED, PREPARED_PAYLOAD.pack(2, -1), transaction=committed)
    writer.add(Kind.APPLY, APPLY_PAYLOAD.pack(-1, 0), transaction=committed, durable=writer.position)
    writer.add(Kind.DISCARD, DISCARD_PAYLOAD.pack(1, -1), transaction=aborted, durable=writer.position)
    writer.add(Kind.TRIM, TRIM_PAYLOAD.pack(1), durable=writer.position)
    for _ in range(3):
        writer.add(Kind.PLAIN, batch, records=1, durable=first)
    return writer.written


SOUND = sound_entries()
DRAFTS = [each for each in SOUND if each.entry.kind == Kind.DRAFT and each.entry.transaction == COMMITTED]
HEAD = DRAFTS[-1].entry.position
BASES = (0, SOUND[4].entry.position, SOUND[9].entry.position)
OLD_BASES = BASES[:1]
SOUND_FILES = segment_files(SOUND, IDENTITY, BASES, OLD_BASES)
STARTS = [written.entry.position for written in SOUND] + [SOUND[-1].entry.end]


def feed_files(data: bytes) -> bool:
    """The position of the checkpoint, which file to edit or to lose, and the edits.

    What is recovered was written, and what is cut was not durable, as far as what is left can tell.
    """
    choices = Choices(data)
    start, files = choices.one_of(STARTS), changed_files(choices)
    with mount(MemoryDisk(files)):
        check_walk()
        first = recovered(start)
        if first is None:
            return False
        expected = [each for each in SOUND if each.entry.position >= start]
        assert first == expected[: len(first)]
        end = first[-1].entry.end if first else start
        lost = [each for each in still_there(files) if each.entry.position > end and each.entry.durable > end]
        assert not lost, "I9: what was durable is never cut"
        assert recovered(start) == first, "what is recovered once is recovered again"
    return True


def check_walk() -> None:
    """A transaction's drafts, as they are read when it is applied."""
    journal = new_journal(IDENTITY)
    with contextlib.suppress(DamagedJournal, StorageFailure):
        journal.open()
        walk = ReverseWalk(journal, COMMITTED, read_from_disk)
        for keep_bytes in (0, 1 << 20):
            drafts = walk.collect(HEAD, keep_bytes)
            assert [walk.payload(draft.entry) for draft in drafts] == [each.payload for each in DRAFTS]


def still_there(files: dict[Path, bytes]) -> list[Written]:
    """The entries that stand where they were written."""
    found = []
    for each in SOUND:
        base = max(base for base in BASES if base <= each.entry.position)
        at = SEGMENT_HEADER_BYTES + each.entry.position - base
        content = each.old_bytes if base in OLD_BASES else each.encoded
        if files.get(JOURNAL / file_name(base), b"")[at : at + each.entry.length] == content:
            found.append(each)
    return found


def changed_files(choices: Choices) -> dict[Path, bytes]:
    files = dict(SOUND_FILES)
    while not choices.is_over:
        path = choices.one_of(sorted(SOUND_FILES))
        kind = choices.number() % 8
        if kind == 0:
            files.pop(path, None)
        elif kind == 1:
            files[path.with_name(choices.one_of(["0.journal", "x.journal", "1.tmp", file_name(1)]))] = (
                choices.some()
            )
        elif path in files:
            files[path] = edited(files[path], choices)
    return files


def recovered(start: int) -> list[Written] | None:
    """What recovery finds after a checkpoint; None if it says that the journal is damaged."""
    found: list[Written] = []
    journal = new_journal(IDENTITY)
    try:
        journal.open()
        journal.recover(start, lambda each: found.append(Written(each.entry, bytes(each.payload))))
    except (DamagedJournal, StorageFailure):
        return None
    assert journal.watermarks.appended == (found[-1].entry.end if found else start)
    return found


# -- sound entries with odd fields ---------------------------------------------------------------------------

TRANSACTIONS = [
    NO_TRANSACTION,
    *(TransactionId(pid, epoch, n) for pid in (1, 2) for epoch in (0, 1) for n in (0, 1)),
]
BATCH = build_batch(
    [NewRecord(b"value", b"key", 1_000), NewRecord(None)], producer_id=1, producer_epoch=0, base_sequence=0
)
DATA_KINDS = [
    Kind.PLAIN,
    Kind.DRAFT,
    Kind.PREPARED,
    Kind.APPLY,
    Kind.DISCARD,
    Kind.TRIM,
    Kind.FORGET_PRODUCERS,
]

MakePayload = Callable[[Choices, int], bytes]


def odd_entries(choices: Choices, kinds: list[Kind], payload_of: MakePayload) -> list[Written]:
    """Entries of these kinds and sometimes of others, that belong together more often than not."""
    writer = Writer()
    heads: dict[TransactionId, int] = {}
    while not choices.is_over and len(writer.written) < ENTRIES_MAX:
        number = choices.number()
        kind = kinds[number % len(kinds)] if number < 0xF8 else number
        transaction = choices.one_of(TRANSACTIONS)
        oddity = choices.number()
        previous = heads.get(transaction, -1) if oddity & 7 else choices.signed(8)
        records = 2 if oddity & 0x38 else choices.number(4)
        durable = 0 if oddity & 0x40 else choices.number(2)
        if kind == Kind.DRAFT:
            heads[transaction] = writer.position
        writer.add(
            kind,
            payload_of(choices, kind),
            records=records,
            previous=previous,
            transaction=transaction,
            durable=durable,
        )
    return writer.written


def data_payload(choices: Choices, kind: int) -> bytes:
    """A payload for an entry of a data journal."""
    if choices.number() % 8 == 0:
        return choices.some()
    if kind in (Kind.PLAIN, Kind.DRAFT):
        return edited(BATCH, Choices(choices.take(choices.number() % 32)))
    if kind == Kind.APPLY:
        return APPLY_PAYLOAD.pack(choices.signed(1), choices.signed(1))
    if kind == Kind.PREPARED:
        return PREPARED_PAYLOAD.pack(choices.number(), choices.signed(1))
    if kind == Kind.DISCARD:
        return DISCARD_PAYLOAD.pack(choices.signed(1), choices.signed(1))
    if kind == Kind.FORGET_PRODUCERS:
        return b"".join(FORGET_PAYLOAD.pack(choices.signed(1)) for _ in range(choices.number() % 4))
    return TRIM_PAYLOAD.pack(choices.signed(choices.number() % 9))


@contextlib.contextmanager
def refusals() -> Iterator[list[FaircopyError]]:
    """The error by which the product refuses what is done here, if it does."""
    refused: list[FaircopyError] = []
    try:
        yield refused
    except FaircopyError as error:
        refused.append(error)


def feed_entries(data: bytes) -> bool:
    """A journal of a topic's partition, recovered with its log."""
    written = odd_entries(Choices(data), DATA_KINDS, data_payload)
    with mount(MemoryDisk(segment_files(written, IDENTITY))), refusals() as refused:
        store, journal = new_store(), new_journal(IDENTITY)
        log = DataLog(LOG, IDENTITY, store, SEGMENT_BYTES)
        copier = LogCopier(journal, log, store, cast(Any, None), cast(Any, None), lambda error: None)
        partition = Partition(PartitionName("orders", 0), PARTITION, journal, copier, store, cast(Any, None))
        recover(partition)
        check_partition(partition)
    return not refused


def check_partition(partition: Partition) -> None:
    """Recovery has folded all there is. Not raised as an `AssertionError`, which the folds may."""
    if partition.state.position != partition.journal.watermarks.appended:
        raise RuntimeError(f"the fold ends at {partition.state.position}, and not at the journal's end")


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
]
NUMBERS: list[Any] = [0, 1, -1, 2**31, 2**63, -(2**63), 10**40, 0.5, None, True, "1", []]
TOPIC_IDS: list[Any] = ["00" * 16, "0f" * 16, "ff" * 16, "", "orders", None, 1, []]
NAMES: list[Any] = ["orders/1", "orders", "", "\ud800", "x" * 600, None, 1, []]


def metadata_payload(choices: Choices, _kind: int) -> bytes:
    """A payload for an entry of a metadata journal: the fields of all kinds, since each takes its own."""
    if choices.number() % 16 == 0:
        return choices.some()
    places = [[choices.one_of(TOPIC_IDS), choices.one_of(NUMBERS), choices.one_of(NUMBERS)] for _ in range(2)]
    width = 2 + choices.number() % 2
    payload = {
        "id": choices.one_of(NAMES),
        "timeout_ms": choices.one_of(NUMBERS),
        "at_ms": choices.one_of(NUMBERS),
        "pardoned": choices.one_of(NUMBERS),
        "told": choices.one_of(NUMBERS),
        "untold": choices.one_of(NUMBERS),
        "fence": choices.one_of(NUMBERS),
        "partitions": [place[:width] for place in places],
    }
    return json.dumps(payload).encode()


def feed_metadata(data: bytes) -> bool:
    """A journal of transactions, recovered."""
    identity = journal_identity(0)
    written = odd_entries(Choices(data), METADATA_KINDS, metadata_payload)
    with mount(MemoryDisk(segment_files(written, identity))), refusals() as refused:
        MetadataJournal(0, new_journal(identity), new_store(), cast(Any, None)).recover()
    return not refused


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
    with mount(MemoryDisk(segment_files(written, IDENTITY))), refusals() as refused:
        store, journal = new_store(), new_journal(IDENTITY)
        table = GroupOffsets(IDENTITY, journal, store)
        name = PartitionName(OFFSETS_TOPIC, 0)
        partition = Partition(name, PARTITION, journal, table, store, cast(Any, None), has_batches=False)
        recover(partition)
        for transaction_id, transaction in partition.state.transactions.items():
            if transaction.is_undecided and transaction.drafts:
                table.recover_open(transaction_id, transaction.head)
    return not refused
