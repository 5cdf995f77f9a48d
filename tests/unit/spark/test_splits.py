"""How ranges are divided among tasks: nothing is left out or read twice, and small ranges share a task."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from faircopy.client import OffsetRange
from faircopy.spark.splits import ROWS_TOGETHER, splits, tasks

TOPIC_IDS = {"a": b"the id of topic a", "b": b"the id of topic b"}
SIZES = st.integers(0, 5) | st.integers(0, 3 * ROWS_TOGETHER)
RANGES = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.integers(0, 20)), st.tuples(st.integers(0, 1000), SIZES), max_size=20
)


@given(RANGES, st.integers(1, 8), st.none() | st.integers(1000, 50_000))
def test_tasks_read_everything_once(
    sizes: dict[tuple[str, int], tuple[int, int]], at_least: int, rows_max: int | None
) -> None:
    ranges = {each: OffsetRange(start, start + size) for each, (start, size) in sizes.items()}
    found = splits(ranges, TOPIC_IDS, at_least, rows_max)
    grouped = tasks(found, at_least, rows_max)
    assert [split for task in grouped for split in task] == list(found)
    ends = {each: start for each, (start, _) in ranges.items()}
    for split in found:
        assert ends[split.topic, split.partition] == split.start < split.end
        assert split.topic_id == TOPIC_IDS[split.topic]
        ends[split.topic, split.partition] = split.end
    assert ends == {each: end for each, (_, end) in ranges.items()}
    assert at_least == 1 or len(grouped) == len(found)
    together = min(ROWS_TOGETHER, rows_max or ROWS_TOGETHER)
    for task in grouped:
        assert len(task) == 1 or sum(split.end - split.start for split in task) <= together
