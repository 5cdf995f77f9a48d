"""Old log data is checked once, and new data never."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.datalog import check
from faircopy.datalog.check import check_up_to, needs_check
from faircopy.datalog.checked import CheckedBytes, CheckedRange
from faircopy.datalog.index import Place
from faircopy.datalog.read import DamagedLog, ReadPlan, read_from_disk
from faircopy.datalog.segment import LogSegment
from faircopy.storage.epoch_history import Epochs
from faircopy.wire.records import NewRecord, build_batch

EPOCHS = Epochs.of([(0, 0), (2, 30), (3, 31 * 3)])
ranges = st.tuples(st.integers(0, 20), st.integers(1, 8)).map(lambda r: (r[0], min(r[0] + r[1], 20)))


@given(st.lists(ranges.filter(lambda r: r[0] < r[1])), ranges)
def test_checked_bytes_are_a_set_of_bytes(added: list[tuple[int, int]], asked: tuple[int, int]) -> None:
    checked, oracle = CheckedBytes(20), set[int]()
    for begin, end in added:
        checked.add(CheckedRange(begin, end, end))
        oracle |= set(range(begin, end))
    begin, end = asked
    assert checked.covers(begin, end) == (begin >= 20 or set(range(begin, max(end, begin + 1))) <= oracle)
    assert checked.covers(20, 1 << 40)
    found = checked.range_at(begin) if begin < 20 else None
    assert (found is not None) == (begin in oracle)
    if found is not None:
        assert found.end_offset == found.end
        assert begin in range(found.begin, found.end)


def segment_of(path: Path, batches: int) -> tuple[LogSegment, list[int]]:
    """An old segment with batches of three messages, and where each begins."""
    data, begins = b"", []
    for number in range(batches):
        begins.append(len(data))
        messages = [NewRecord(b"%d" % number * 50)] * 3
        data += build_batch(messages, base_offset=3 * number, leader_epoch=EPOCHS.epoch_at(3 * number))
    file = path / "00000000000000000000.log"
    file.write_bytes(data)
    return LogSegment.found(file, EPOCHS), begins


def plan_of(segment: LogSegment, place: Place) -> ReadPlan:
    return ReadPlan(segment, place, place.offset, segment.size)


def test_old_data_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segment, begins = segment_of(tmp_path, 200)
    reads: list[int] = []

    def noted(segment: LogSegment, size: int, byte: int) -> bytes:
        reads.append(byte)
        return read_from_disk(segment, size, byte)

    monkeypatch.setattr(check, "PIECE_BYTES", 2_000)
    monkeypatch.setattr(check, "read_from_disk", noted)
    plan = plan_of(segment, Place(0, 0, 0))
    assert needs_check(plan, 1)
    check_up_to(plan, begins[50])
    seen = len(reads)
    check_up_to(plan_of(segment, Place(30, 0, begins[10])), begins[40])
    assert len(reads) == seen
    check_up_to(plan_of(segment, Place(300, 0, begins[100])), segment.size)
    check_up_to(plan, segment.size)
    assert not needs_check(plan, 1 << 20) and sorted(reads) == sorted(set(reads))
    segment.path.write_bytes(segment.path.read_bytes() + b"what this process has written since")
    segment.size = segment.path.stat().st_size
    assert not needs_check(plan_of(segment, Place(600, 0, segment.checked.old_bytes)), 1)


@given(byte=st.integers(0, 10_000), bits=st.integers(1, 255), first=st.integers(0, 39))
def test_a_changed_byte_is_found_from_wherever_reading_begins(
    tmp_path_factory: pytest.TempPathFactory, byte: int, bits: int, first: int
) -> None:
    segment, begins = segment_of(tmp_path_factory.mktemp("log"), 40)
    data = bytearray(segment.path.read_bytes())
    byte %= len(data)
    data[byte] ^= bits
    segment.path.write_bytes(data)
    plan = plan_of(segment, Place(3 * first, 0, begins[first]))
    damaged = max(number for number, begin in enumerate(begins) if begin <= byte)
    if damaged < first:
        check_up_to(plan, segment.size)
        return
    with pytest.raises(DamagedLog, match=f"byte {begins[damaged]}, offset {3 * damaged}"):
        check_up_to(plan, segment.size)
