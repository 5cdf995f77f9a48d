"""A simulated reader of many partitions, which reads them cut by cut, as a micro-batch engine does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from tests.checker.history import Read
from tests.simulation.consumer import SimulatedConsumer
from tests.simulation.network import Disconnected, Remote
from tests.simulation.producer import partition_of

RETRY = {
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
PAUSE_SECONDS = 0.2
Transaction = tuple[int, int, int]


class CutReader:
    """`positions` are the ends of the cuts so far; `reads` is all that was in them."""

    def __init__(self, remote: Remote, partitions: list[str], is_over: Callable[[], bool]) -> None:
        self._remote = remote
        self._is_over = is_over
        self._consumer = SimulatedConsumer(remote, partitions, is_committed=True)
        self._transactions: set[Transaction] = set()
        self.positions: dict[str, int] = dict.fromkeys(partitions, 0)
        self.reads: list[Read] = []

    async def read_on(self, **limits: int) -> bool:
        """Take the next cut, and read what is in it. False if there is none now. Raises Disconnected."""
        ends = await self._take(limits)
        if ends is None or ends == self.positions:
            return False
        transactions = await self._transactions_up_to(ends)
        if transactions is None or not await self._read_up_to(ends):
            return False
        divided = transactions & self._transactions
        assert not divided, f"the cut at {ends} divides {divided}"
        self._transactions |= transactions
        self.positions = ends
        return True

    async def _take(self, limits: dict[str, int]) -> dict[str, int] | None:
        topics = [
            {"name": topic, "partitions": [{"partition": number, "start_offset": self.positions[name]}]}
            for name in self.positions
            for topic, number in [partition_of(name)]
        ]
        answer = await self._remote.ask(ApiKey.CUT, 0, limits | {"topics": topics})
        found = {
            f"{topic.name}-{each.partition}": each for topic in answer.topics for each in topic.partitions
        }
        codes = {answer.error_code, *(each.error_code for each in found.values())} - {ErrorCode.NONE}
        assert codes <= RETRY, codes
        return None if codes else {name: int(each.end_offset) for name, each in found.items()}

    async def _transactions_up_to(self, ends: dict[str, int]) -> set[Transaction] | None:
        """The transactions that have messages in a cut; None if they can't be had now."""
        found = set()
        for name, end in ends.items():
            start = self.positions[name]
            while start < end:
                answer = await self._spans(name, start, end)
                if answer.error_code != ErrorCode.NONE:
                    assert answer.error_code in RETRY, answer.error_code
                    return None
                found |= {(each.producer_id, each.producer_epoch, each.number) for each in answer.spans}
                start = answer.next_offset
        return found

    async def _spans(self, name: str, start: int, end: int) -> Any:
        topic, number = partition_of(name)
        body = {"name": topic, "partition": number, "start_offset": start, "end_offset": end}
        return await self._remote.ask(ApiKey.SPANS, 0, body)

    async def _read_up_to(self, ends: dict[str, int]) -> bool:
        """Read a cut. False if the run is over before that."""
        consumer, reads = self._consumer, list[Read]()
        consumer.positions = dict(self.positions)
        while any(consumer.positions[name] < end for name, end in ends.items()):
            if self._is_over():
                return False
            try:
                reads += await consumer.poll(wait_ms=100)
            except Disconnected:
                await asyncio.sleep(PAUSE_SECONDS)
        self.reads += [read for read in reads if read.offset < ends[read.partition]]
        return True
