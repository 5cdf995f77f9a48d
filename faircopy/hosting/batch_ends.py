"""How far the messages of a partition's log go that have so many rows, and whole batches of so many bytes.

The index of the log finds the neighbourhood; then the headers of at most two intervals of the index are read.
"""

from __future__ import annotations

from faircopy.datalog.log import DataLog
from faircopy.datalog.read import ReadPlan, read_from_disk, walk
from faircopy.hosting.largest_cut import UNLIMITED, Batches, Filled
from faircopy.storage.disk_pool import DiskPool


class BatchEnds:
    """The ends of the batches of one log, and roughly its bytes. It is for one request: the log may grow, but
    what comes is not asked for.
    """

    def __init__(self, log: DataLog) -> None:
        self._log = log
        self._bytes_before: dict[int, int] = {}
        total = 0
        for segment in log.segments:
            self._bytes_before[segment.base_offset] = total
            total += segment.size

    def bytes_up_to(self, offset: int) -> int:
        """Roughly how many bytes there are below an offset."""
        if offset <= self._log.start_offset:
            return 0
        near = self._log.place_at_or_before(offset)
        return self._bytes_before.get(near.segment_base, 0) + near.byte

    async def fill(self, step: Batches, disk: DiskPool) -> Filled:
        """Carry out a step of `largest_cut`. Raises OffsetOutOfRange, DamagedLog, StorageFailure."""
        step = step._replace(end=min(step.end, step.offset + max(step.rows, step.at_least_one)))
        target = self._offset_at(step)
        if target == step.end:
            return Filled(step.end, self._bytes_between(step.offset, step.end))
        plan = self._log.plan_read(target)
        if plan is None:
            return Filled(step.offset, 0)
        if plan.near.offset <= step.offset:
            return await disk.run(fill_by_headers, plan, step, step.offset, 0)
        size = self._bytes_between(step.offset, plan.near.offset)
        return await disk.run(fill_by_headers, plan, step, plan.near.offset, size)

    def _bytes_between(self, first: int, end: int) -> int:
        return max(self.bytes_up_to(end) - self.bytes_up_to(first), 0)

    def _offset_at(self, step: Batches) -> int:
        """The last offset up to which there are roughly as many bytes as the step may have."""
        if step.size >= UNLIMITED or self._bytes_between(step.offset, step.end) <= step.size:
            return step.end
        low, high = step.offset, step.end
        size_max = self.bytes_up_to(step.offset) + step.size
        while low + 1 < high:
            middle = (low + high) // 2
            if self.bytes_up_to(middle) <= size_max:
                low = middle
            else:
                high = middle
        return low


def fill_by_headers(plan: ReadPlan, step: Batches, begin: int, size: int) -> Filled:
    """Go on from the batch that has offset `begin`, with `size` bytes before it, as far as the step allows.
    Blocks.
    """
    end = begin
    for _, header in walk(plan, read_from_disk):
        if header.last_offset < begin:
            continue
        is_first = step.at_least_one and end == step.offset
        if end == step.end or not (is_first or size + header.size_bytes <= step.size):
            break
        end, size = min(header.last_offset + 1, step.end), size + header.size_bytes
    return Filled(end, size)
