"""Entries of a topic's partition, to the fold and the copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from faircopy.copier.fold import (
    APPLY_PAYLOAD,
    DISCARD_PAYLOAD,
    FORGET_PAYLOAD,
    LEAD,
    PREPARED_PAYLOAD,
    TRIM_PAYLOAD,
)
from faircopy.copier.log_copier import LogCopier
from faircopy.datalog.log import DataLog
from faircopy.journal.entry import Kind
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.name import PartitionName
from faircopy.partition.opening import recover
from faircopy.storage.system import mount
from faircopy.wire.records import NewRecord, build_batch
from tests.fuzz.choices import Choices
from tests.fuzz.journals import IDENTITY, LOG, PARTITION, SEGMENT_BYTES, new_journal, new_store, segment_files
from tests.fuzz.memory import MemoryDisk, edited
from tests.fuzz.odd_entries import odd_entries, refusals

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
    Kind.REOPEN,
]


def data_payload(choices: Choices, kind: int) -> bytes:
    """A payload for an entry of a data journal."""
    if choices.number() % 8 == 0:
        return choices.some()
    if kind in (Kind.PLAIN, Kind.DRAFT):
        return edited(BATCH, Choices(choices.take(choices.number() % 32)))
    if kind == Kind.APPLY:
        lead = (
            LEAD.pack(choices.signed(1), choices.signed(1), choices.signed(1))
            if choices.number() % 2
            else b""
        )
        return APPLY_PAYLOAD.pack(choices.signed(1), choices.signed(1)) + lead
    if kind == Kind.PREPARED:
        return PREPARED_PAYLOAD.pack(choices.number(), choices.signed(1))
    if kind == Kind.DISCARD:
        return DISCARD_PAYLOAD.pack(choices.signed(1), choices.signed(1))
    if kind == Kind.REOPEN:
        return b""
    if kind == Kind.FORGET_PRODUCERS:
        return b"".join(FORGET_PAYLOAD.pack(choices.signed(1)) for _ in range(choices.number() % 4))
    return TRIM_PAYLOAD.pack(choices.signed(choices.number() % 9))


class StillLoop:
    """The loop of a partition that is recovered, but never served."""

    def call_soon_threadsafe(self, callback: Callable[[], None]) -> None:
        pass


def feed_entries(data: bytes) -> bool:
    """A journal of a topic's partition, recovered with its log."""
    written = odd_entries(Choices(data), DATA_KINDS, data_payload)
    with mount(MemoryDisk(segment_files(written, IDENTITY))), refusals() as refused:
        store, journal = new_store(), new_journal(IDENTITY)
        log = DataLog(LOG, IDENTITY, store, SEGMENT_BYTES)
        copier = LogCopier(journal, log, store, cast(Any, None), cast(Any, StillLoop()), lambda error: None)
        name = PartitionName("orders", 0)
        partition = HostedPartition(name, PARTITION, journal, copier, store, cast(Any, None))
        recover(partition)
        check_partition(partition)
    return not refused


def check_partition(partition: HostedPartition) -> None:
    """Recovery has folded all there is. Not raised as an `AssertionError`, which the folds may."""
    if partition.state.position != partition.journal.watermarks.appended:
        raise RuntimeError(f"the fold ends at {partition.state.position}, and not at the journal's end")
