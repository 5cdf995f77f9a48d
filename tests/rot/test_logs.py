"""Every flip in a data log is found, except after the checkpoint's end: a start writes that again."""

from __future__ import annotations

import random

import pytest

from faircopy.storage.state_store import StateStore
from faircopy.verify.journal_entries import open_to_show, shown_entries
from faircopy.verify.log_files import LogFile, base_offset_of
from faircopy.verify.partition import PartitionCheck, load_checkpoint
from faircopy.wire.batch import HEADER_BYTES
from faircopy.wire.records import with_crc
from tests.rot.flips import flipped, flips_of
from tests.rot.made import Made, identity

SAMPLES = 400


def checker(made: Made, store: StateStore, topic: str, partition: int) -> PartitionCheck:
    journal, log = (made.files(part, topic, partition)[0].parent for part in ("journal", "log"))
    return PartitionCheck(identity(store, topic, partition), journal, log, store, lambda _bytes: None)


@pytest.mark.parametrize(("topic", "partition"), [("audit", 0), ("orders", 1), ("bulk", 0), ("bulk", 1)])
def test_flips_in_a_log(stopped: Made, topic: str, partition: int, chance: random.Random) -> None:
    store = StateStore.open_to_read(stopped.data / "state.lmdb")
    assert list(checker(stopped, store, topic, partition).run()) == []
    for path in stopped.files("log", topic, partition)[:3]:
        stands = [(batch.byte, batch.end) for batch in LogFile(path).batches(base_offset_of(path))]
        size = path.stat().st_size
        assert stands[-1][1] == size, "stopped in order, the log ends where its checkpoint has it"
        every = range(size) if topic == "audit" else range(HEADER_BYTES)
        for flip in flips_of(chance, every, range(HEADER_BYTES, size), SAMPLES if topic == "orders" else 30):
            begin = next(begin for begin, end in stands if flip.byte < end)
            with flipped(path, flip):
                findings = list(checker(stopped, store, topic, partition).run())
            assert any(each.path == path and each.byte == begin for each in findings), (path, flip, findings)
    store.close()


def test_what_a_start_writes_again_does_not_matter(killed: Made, chance: random.Random) -> None:
    """Behind the checkpoint's end the log is what the journal says, whatever its files hold there."""
    store = StateStore.open_to_read(killed.data / "state.lmdb")
    assert load_checkpoint(store, identity(store, "orders", 0)) is None
    (path,) = killed.files("log", "orders", 0)
    for flip in flips_of(chance, range(HEADER_BYTES), range(path.stat().st_size), 100):
        with flipped(path, flip):
            assert list(checker(killed, store, "orders", 0).run()) == [], flip
    store.close()


def test_a_batch_that_is_sound_and_wrong_is_found(stopped: Made) -> None:
    """I1: the log is what the journal says, also where every checksum fits."""
    store = StateStore.open_to_read(stopped.data / "state.lmdb")
    (path,) = stopped.files("log", "orders", 0)
    before = path.read_bytes()
    third = list(LogFile(path).batches(0))[2]
    changed = bytearray(third.data)
    changed[-1] ^= 1
    path.write_bytes(before[: third.byte] + with_crc(changed) + before[third.end :])
    (finding,) = checker(stopped, store, "orders", 0).run()
    assert (finding.path, finding.byte) == (path, third.byte) and "I1" in finding.what
    path.write_bytes(before)
    store.close()


def test_the_end_of_a_journal_that_was_shown(killed: Made) -> None:
    """I2: what the log has shown was durable: a journal that ends before was not torn."""
    store = StateStore.open_to_read(killed.data / "state.lmdb")
    path = killed.files("journal", "audit", 0)[-1]
    before = path.read_bytes()
    last = list(shown_entries(open_to_show(path)))[-1].byte
    path.write_bytes(before[: last - 200] + bytes(len(before) - last + 200))
    (finding,) = checker(killed, store, "audit", 0).run()
    assert finding.path == path and "the log has shown offsets up to 9" in finding.what
    path.write_bytes(before)
    store.close()
