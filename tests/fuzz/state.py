"""The state store: its file with edits, and its values.

The file goes to the check of `faircopy verify`, the values to their decoders. A value comes with a
checksum of its own, so odd ones were written by a bug, or by a newer broker: its decoder may refuse them as
loudly as it likes. A head, a page or a value that a disk has changed must be found by the check.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
import tempfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast

from faircopy.catalogue.journal import CATALOGUE_IDENTITY, CatalogueJournal
from faircopy.catalogue.producer_ids import COUNTER, ProducerIds
from faircopy.catalogue.topics import PREFIX, Topics
from faircopy.copier.checkpoint import Checkpoint, encode_checkpoint
from faircopy.copier.span_chunk import chunk_key
from faircopy.copier.spans import Spans
from faircopy.datalog.index import SparseIndex
from faircopy.datalog.log import DataLog
from faircopy.errors import FaircopyError
from faircopy.groups.group_offsets import GroupOffsets
from faircopy.partition.name import PartitionName
from faircopy.partition.partition import Partition
from faircopy.storage.data_directory import FORMAT as DIRECTORY_FORMAT
from faircopy.storage.data_directory import DataDirectoryError, DirectoryFormat, read_format
from faircopy.storage.failures import StorageFailure
from faircopy.storage.state_store import Put, StateStore
from faircopy.storage.store_check import FILE, MAP_BYTES, STAMP
from faircopy.storage.system import mount
from faircopy.transactions.metadata_journal import MetadataJournal, journal_identity
from faircopy.verify.state import check_store
from faircopy.verify.state_pages import StorePages
from tests.fuzz.choices import Choices
from tests.fuzz.documents import odd_document
from tests.fuzz.journals import IDENTITY, LOG, PARTITION, new_journal, new_store
from tests.fuzz.memory import MemoryDisk, edited
from tests.simulation.store import Contents

DIRECTORY = Path("/data/state.lmdb")
FORMAT = Path("/data/format.json")
LARGE_VALUE_BYTES = 9_000
KEYS = 150

Row = tuple[bytes, bytes, bytes]  # table, key, sealed value


# -- the file ------------------------------------------------------------------------------------------------


@cache
def sound_file() -> bytes:
    """The file of a store with a tree of two levels, values on overflow pages, and free pages."""
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(write_store(Path(directory)))
        return Path(directory, FILE).read_bytes()


async def write_store(directory: Path) -> None:
    store = StateStore(directory, asyncio.get_running_loop())
    await store.write([Put("spans", b"%020d" % number, bytes(8)) for number in range(KEYS)])
    await store.write([Put("group_offsets", b"large", bytes(LARGE_VALUE_BYTES))])
    await store.write([Put("group_offsets", b"large", b"small"), Put("catalogue", b"key", b"value")])
    store.close()


@cache
def sound_rows() -> frozenset[Row]:
    """All that stands in it."""
    with mount(MemoryDisk({DIRECTORY / FILE: sound_file()})):
        return frozenset((each.table, each.key, each.value) for each in new_walk().records())


def new_walk() -> StorePages:
    return StorePages(DIRECTORY / FILE, STAMP, MAP_BYTES)


def feed_file(data: bytes) -> bool:
    """Edits. A file that passes has all that was written, and nothing else."""
    expected = sound_rows()
    disk = MemoryDisk({DIRECTORY / FILE: edited(sound_file(), Choices(data))})
    with mount(disk), contextlib.suppress(StorageFailure):
        check = check_store(DIRECTORY)
        if not check.flaws and not check.damaged:
            check_passed(expected)
            return True
    return False


def check_passed(expected: frozenset[Row]) -> None:
    found = {(each.table, each.key, each.value) for each in new_walk().records()}
    assert not found or found == expected


# -- values --------------------------------------------------------------------------------------------------


UNREADABLE = (FaircopyError, AssertionError, struct.error, LookupError, TypeError, ValueError, AttributeError)
"""How a value that no broker writes may be refused: before it is read, its checksum was found right."""


def feed_value(data: bytes) -> bool:
    """The first byte chooses the table and who reads it, then comes the rest of a key, and the value."""
    choices = Choices(data)
    read = choices.one_of(READERS)
    contents = Contents()
    with contextlib.suppress(*UNREADABLE):
        read(contents, choices)
        return True
    return False


def put(contents: Contents, table: str, choices: Choices, prefix: bytes = IDENTITY) -> None:
    """A record of the input in a table."""
    key = choices.take(choices.number() % 64)
    contents.tables[table].put(prefix + key, choices.some())


def read_partition(contents: Contents, choices: Choices) -> None:
    """Checkpoint, producers and transactions, as a partition loads them."""
    contents.tables["checkpoints"].put(IDENTITY, choices.some() or SOUND_CHECKPOINT)
    for table in ("producers", "transactions"):
        put(contents, table, choices)
    store, journal = new_store(contents), new_journal(IDENTITY)
    sink = GroupOffsets(IDENTITY, journal, store)
    Partition(PartitionName("orders", 0), PARTITION, journal, sink, store, cast(Any, None)).load()


def read_indexes(contents: Contents, choices: Choices) -> None:
    """The index of a log, as readers ask for places and times."""
    put(contents, "offset_index", choices)
    index = SparseIndex(IDENTITY, new_store(contents))
    index.place_at_or_before(choices.number(8))
    list(index.in_store(choices.number(8)))
    index.trim(choices.number(8))


def read_spans(contents: Contents, choices: Choices) -> None:
    """The spans of a log, as readers ask for them."""
    put(contents, "spans", choices)
    compressed = struct.pack(">BH", 0xFF, choices.number(2)) + zlib.compress(choices.rest())
    contents.tables["spans"].put(chunk_key(IDENTITY, 1), compressed)
    store = new_store(contents)
    log = DataLog(LOG, IDENTITY, store, 1 << 20)
    list(Spans(log.identity, store).between(0, 1 << 60))


def read_group_offsets(contents: Contents, choices: Choices) -> None:
    """The offsets of groups, as their journal loads them."""
    put(contents, "group_offsets", choices)
    put(contents, "groups", choices)
    GroupOffsets(IDENTITY, new_journal(IDENTITY), new_store(contents)).load()


def read_transactional_ids(contents: Contents, choices: Choices) -> None:
    """The table of a metadata journal, as it is recovered."""
    identity = journal_identity(0)
    contents.tables["checkpoints"].put(identity, choices.some() or b'{"position": 0}')
    put(contents, "transactional_ids", choices, identity)
    journal = MetadataJournal(0, new_journal(identity), new_store(contents), cast(Any, None))
    with mount(MemoryDisk({LOG: b""})):
        journal.open()


def read_catalogue(contents: Contents, choices: Choices) -> None:
    """The catalogue's checkpoint, as it is recovered: topics, and a counter."""
    contents.tables["checkpoints"].put(CATALOGUE_IDENTITY, b'{"position": 0}')
    put(contents, "catalogue", choices, PREFIX.encode())
    contents.tables["catalogue"].put(COUNTER.encode(), choices.some())
    store = CatalogueJournal(new_journal(CATALOGUE_IDENTITY), new_store(contents), cast(Any, None))
    with mount(MemoryDisk({LOG: b""})):
        store.open()
    for topic in Topics(store).load():
        assert len(topic.partition_id(0).identity) == len(IDENTITY)
    ProducerIds(store, 1)


SOUND_CHECKPOINT = json.dumps(
    json.loads(encode_checkpoint(IDENTITY, Checkpoint(0, 0, 0, None, 0)).value)
).encode()
READERS: list[Callable[[Contents, Choices], None]] = [
    read_partition,
    read_indexes,
    read_spans,
    read_group_offsets,
    read_transactional_ids,
    read_catalogue,
]


# -- the format file -----------------------------------------------------------------------------------------

SOUND_FORMAT = json.loads(DirectoryFormat(DIRECTORY_FORMAT).encode())


def feed_format(data: bytes) -> bool:
    """The first byte chooses between a changed document and any bytes. What is read is what was written."""
    choices = Choices(data)
    content = odd_document(SOUND_FORMAT, choices) if choices.number() % 2 else choices.rest()
    with mount(MemoryDisk({FORMAT: content})), contextlib.suppress(DataDirectoryError):
        assert read_format(FORMAT).encode() == content
        return True
    return False
