"""The visible log: segment files with edits, whose readers must be shown what was written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from faircopy.datalog.check import check_up_to, needs_check
from faircopy.datalog.index import Place, SparseIndex
from faircopy.datalog.log import DataLog, LogEnd
from faircopy.datalog.read import DamagedLog, find_batches, read_batches, read_from_disk
from faircopy.datalog.segment import file_name
from faircopy.datalog.time_search import find_in_segment, find_latest_in_segment, search_of
from faircopy.storage.epoch_history import Epochs
from faircopy.storage.failures import StorageFailure
from faircopy.storage.state_store import Put
from faircopy.storage.system import mount
from faircopy.verify.log_files import DamagedLogFile, LogFile, base_offset_of, log_files
from faircopy.wire.batch import placed_prefix, read_header
from faircopy.wire.records import NewRecord, build_batch
from tests.fuzz.choices import Choices
from tests.fuzz.journals import IDENTITY, LOG, new_store
from tests.fuzz.memory import MemoryDisk, changed_files
from tests.simulation.store import Contents

BATCHES = 12
RECORDS = 3
GREATEST_TIME_MS = 6_000  # of the last batch
BATCHES_OF_A_SEGMENT = 5
EPOCHS = Epochs.of([(0, 0), (2, 3 * RECORDS), (3, 7 * RECORDS)])
READ_BYTES = [0, 1, 61, 200, 1 << 20]


def sound_batches() -> list[bytes]:
    """The batches of a log, with their offsets."""
    messages = [NewRecord(b"value" * 5, b"key", time_ms) for time_ms in (5_000, 4_000, 5_500)]
    batches = [build_batch(messages)] * (BATCHES - 1)
    batches.append(build_batch([*messages[1:], NewRecord(b"newest", None, GREATEST_TIME_MS)]))
    return [
        placed_prefix(number * RECORDS, read_header(batch).length, EPOCHS.epoch_at(number * RECORDS))
        + batch[16:]
        for number, batch in enumerate(batches)
    ]


SOUND = sound_batches()
SOUND_FILES = {
    LOG / file_name(first * RECORDS): b"".join(SOUND[first : first + BATCHES_OF_A_SEGMENT])
    for first in range(0, BATCHES, BATCHES_OF_A_SEGMENT)
}
END_OFFSET = BATCHES * RECORDS
NEW_NAMES = [file_name(END_OFFSET), file_name(7), "old.log"]
LAST_FILE = max(SOUND_FILES)
END = LogEnd(int(LAST_FILE.stem), len(SOUND_FILES[LAST_FILE]))


def stored_index() -> Contents:
    """The state store, with the index that a checkpoint has stored."""
    contents = Contents()
    index = SparseIndex(IDENTITY, new_store(contents))
    for path, content in SOUND_FILES.items():
        at = 0
        while at < len(content):
            header = read_header(content, at)
            index.add(header.base_offset, int(path.stem), at, header.size_bytes, header.max_timestamp_ms)
            at += header.size_bytes
    for change in index.checkpoint(END_OFFSET):
        assert isinstance(change, Put)
        contents.tables[change.table].put(change.key, change.value)
    return contents


INDEX = stored_index()


def feed_files(data: bytes) -> bool:
    """Offsets to read from, times to search for, and edits of the files.

    They are taken if the log opens and all can be read.
    """
    choices = Choices(data)
    reads = [(choices.up_to(END_OFFSET), choices.one_of(READ_BYTES)) for _ in range(4)]
    times_ms = [choices.signed(8), GREATEST_TIME_MS]
    disk = MemoryDisk(changed_files(SOUND_FILES, NEW_NAMES, choices))
    with mount(disk):
        verify_all()
        log = DataLog(LOG, IDENTITY, new_store(INDEX), 1 << 20)
        with refusals() as refused:
            log.open(END, 0, END_OFFSET, EPOCHS)
            for offset, size in reads:
                with refusals(refused):
                    check_read(log, offset, size)
            for time_ms in times_ms:
                with refusals(refused):
                    check_search(log, time_ms)
            leftovers = log.leftovers()
            leftovers.find_forgotten(range(3, 5))
            leftovers.drop()
    return not refused


@contextlib.contextmanager
def refusals(refused: list[Exception] | None = None) -> Iterator[list[Exception]]:
    """All errors by which the log says that it is damaged; those of before, too, if they are given."""
    refused = [] if refused is None else refused
    try:
        yield refused
    except (DamagedLog, StorageFailure) as error:
        refused.append(error)


def check_read(log: DataLog, offset: int, size: int) -> None:
    """As Fetch reads."""
    plan = log.plan_read(offset)
    if plan is None:
        return
    found = find_batches(plan, size, read_from_disk)
    check_up_to(plan, found.position + found.size)
    check_shown(found.file.read(found.size, found.position), offset)
    if not needs_check(plan, size):
        check_shown(read_batches(plan, size, read_from_disk), offset)


def check_shown(data: bytes, offset: int) -> None:
    """At least one whole batch, which is the right one, and what follows it."""
    first = offset // RECORDS
    assert len(data) >= len(SOUND[first])
    assert b"".join(SOUND[first:]).startswith(data)


def check_search(log: DataLog, time_ms: int) -> None:
    """As ListOffsets searches."""
    latest = None
    for segment in log.segments:
        latest = find_latest_in_segment(search_of(log, segment), latest)
    assert latest is not None and latest.timestamp_ms == GREATEST_TIME_MS
    for segment in log.segments:
        found = find_in_segment(search_of(log, segment), time_ms)
        if found is not None:
            assert found.timestamp_ms >= time_ms
            return
    assert time_ms > GREATEST_TIME_MS


def verify_all() -> None:
    """As the check of a data directory reads."""
    for path in log_files(LOG):
        base = base_offset_of(path) or 0
        with contextlib.suppress(DamagedLogFile, StorageFailure):
            for batch in LogFile(path, lambda _bytes: None).batches(base):
                assert Place(batch.header.base_offset, base, batch.byte).offset >= base
