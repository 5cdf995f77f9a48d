"""What `verify` makes of a log whose first segments were deleted, of which a crash brought some back."""

from __future__ import annotations

from pathlib import Path

import pytest

from faircopy.copier.checkpoint import Checkpoint
from faircopy.datalog.index import Place, Stretch
from faircopy.datalog.segment import file_name
from faircopy.storage.epoch_history import Epochs
from faircopy.verify.partition_log import Derived, PartitionLog
from faircopy.verify.span_check import SpanCheck
from faircopy.wire.records import NewRecord, build_batch

SEGMENTS = 5
RECORDS = 10  # of one batch a segment
TIME_MS = 1_000


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    found = [tmp_path / file_name(number * RECORDS) for number in range(SEGMENTS)]
    for path in found:
        write(path, int(path.stem) // RECORDS)
    return found


def write(path: Path, leader_epoch: int) -> None:
    """A segment with one batch of this epoch."""
    records = [NewRecord(b"value", timestamp_ms=TIME_MS)] * RECORDS
    path.write_bytes(build_batch(records, base_offset=int(path.stem), leader_epoch=leader_epoch))


def findings(
    paths: list[Path],
    start_offset: int,
    indexed: tuple[int, ...] = (),
    *,
    is_empty: bool = False,
    latest_ms: int = TIME_MS,
    segment_latest_ms: int = TIME_MS,
) -> list[tuple[str, int | None]]:
    """What is found, as (name of the file, byte); the offset index has the offsets `indexed`, each as the
    first of a segment, with these latest times. `is_empty`: when the checkpoint was stored, the log had given
    up all its segments.
    """
    end = SEGMENTS * RECORDS
    epochs = Epochs.of((number, number * RECORDS) for number in range(SEGMENTS)).trim(start_offset)
    base, size = (None, 0) if is_empty else (int(paths[-1].stem), paths[-1].stat().st_size)
    checkpoint = Checkpoint(0, start_offset, end, base, size, epochs=epochs)
    log = PartitionLog(paths[0].parent, checkpoint, lambda _bytes: None)
    stretches = {offset: Stretch(Place(offset, offset, 0), latest_ms) for offset in indexed}
    of_segments = dict.fromkeys(stretches, segment_latest_ms)
    log.check(iter(()), Derived(stretches, of_segments, SpanCheck([], checkpoint)))
    return [(finding.path.name, finding.byte) for finding in log.findings]


def test_a_gap_below_the_start_is_none(paths: list[Path]) -> None:
    paths[1].unlink()
    assert findings(paths, start_offset=2 * RECORDS) == []
    assert findings(paths, start_offset=2 * RECORDS + 3) == []


def test_the_index_may_still_have_the_gap_below_the_start(paths: list[Path]) -> None:
    """Segments are deleted first, then their entries in the index."""
    paths[1].unlink()
    everything = tuple(number * RECORDS for number in range(SEGMENTS))
    assert findings(paths, 2 * RECORDS, everything) == []
    assert findings(paths, 2 * RECORDS + 3, everything) == []


def test_all_segments_may_be_given_up_before_they_and_their_index_are_deleted(paths: list[Path]) -> None:
    everything = tuple(number * RECORDS for number in range(SEGMENTS))
    assert findings(paths, SEGMENTS * RECORDS, everything, is_empty=True) == []


def test_from_the_segment_of_the_start_on_the_index_has_only_what_is_there(paths: list[Path]) -> None:
    assert findings(paths, 2 * RECORDS + 3, (2 * RECORDS + 1,)) == [(paths[0].parent.name, None)]
    assert findings(paths, 2 * RECORDS + 3, (4 * RECORDS + 1,)) == [(paths[0].parent.name, None)]


def test_no_message_is_later_than_the_index_says(paths: list[Path]) -> None:
    everything = tuple(number * RECORDS for number in range(SEGMENTS))
    assert findings(paths, 0, everything) == []
    every_one = [(path.name, 0) for path in paths]
    assert findings(paths, 0, everything, latest_ms=TIME_MS - 1) == every_one
    assert findings(paths, 0, everything, segment_latest_ms=TIME_MS - 1) == every_one


def test_a_gap_after_the_start_is_damage(paths: list[Path]) -> None:
    size = paths[1].stat().st_size
    paths[2].unlink()
    assert findings(paths, start_offset=2 * RECORDS) == [(paths[1].name, size)]
    assert findings(paths, start_offset=RECORDS) == [(paths[1].name, size)]


def test_what_came_back_is_checked_as_well(paths: list[Path]) -> None:
    paths[1].unlink()
    data = bytearray(paths[0].read_bytes())
    data[-1] ^= 1
    paths[0].write_bytes(data)
    assert findings(paths, start_offset=3 * RECORDS) == [(paths[0].name, 0)]


@pytest.mark.parametrize(("number", "wrong"), [(2, 1), (2, 3), (0, 2), (0, 3)])
def test_a_batch_of_another_leader_epoch_is_damaged(paths: list[Path], number: int, wrong: int) -> None:
    """Below the start the history is forgotten: an epoch there must only precede the first that is known."""
    write(paths[number], wrong)
    assert findings(paths, start_offset=2 * RECORDS) == [(paths[number].name, 0)]


def test_which_epochs_were_before_the_start_is_forgotten(paths: list[Path]) -> None:
    write(paths[0], 1)
    assert findings(paths, start_offset=2 * RECORDS) == []
    assert findings(paths, start_offset=0) == [(paths[0].name, 0)]
