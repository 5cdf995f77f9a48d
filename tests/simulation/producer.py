"""A simulated producer, idempotent or transactional, with the retries and the rules of Kafka's (KIP-98, KIP-360)."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import Message, build_batch
from tests.checker.history import Value
from tests.simulation.network import Disconnected, Remote

TRIES = 8
PAUSE_SECONDS = 0.1
TRANSACTION_TIMEOUT_MS = 8_000

RETRIABLE = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
FENCED = {
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.PRODUCER_FENCED,
}


class Refused(Exception):
    """The broker said no: the request had no effect, and neither had one of its tries if `is_certain`."""

    def __init__(self, code: ErrorCode, *, is_certain: bool) -> None:
        super().__init__(code.name)
        self.code = code
        self.is_certain = is_certain


class GaveUp(Exception):
    """No answer came, try after try: whether the request had an effect is unknown."""


def partition_of(name: str) -> tuple[str, int]:
    """Topic and number of a partition such as `a-0`."""
    topic, _, number = name.rpartition("-")
    return topic, int(number)


class SimulatedProducer:
    """One instance of a producer; `transactional_id` is None for one that is only idempotent."""

    def __init__(self, remote: Remote, transactional_id: str | None, chosen: random.Random) -> None:
        self._remote = remote
        self._transactional_id = transactional_id
        self._chosen = chosen
        self._identity = (-1, -1)
        self._sequences: dict[str, int] = {}
        self._must_bump = False

    async def _ask(self, api_key: ApiKey, version: int, body: dict[str, Any], code_of: Any) -> Any:
        """Ask until there is an answer that is not to be asked again. Raises Refused, GaveUp."""
        is_certain = True
        for _ in range(TRIES):
            try:
                answer = await self._remote.ask(api_key, version, body)
            except Disconnected:
                is_certain = False
            else:
                code = code_of(answer)
                if code == ErrorCode.NONE:
                    return answer
                if code not in RETRIABLE:
                    raise Refused(ErrorCode(code), is_certain=is_certain)
            await asyncio.sleep(PAUSE_SECONDS * (0.5 + self._chosen.random()))
        if is_certain:
            raise Refused(ErrorCode.REQUEST_TIMED_OUT, is_certain=True)
        raise GaveUp(api_key.name)

    def _who(self) -> dict[str, Any]:
        producer_id, epoch = self._identity
        return {"transactional_id": self._transactional_id, "producer_id": producer_id, "producer_epoch": epoch}

    async def begin_life(self) -> None:
        """Get a producer id, and fence those that had this transactional id before. Raises Refused, GaveUp."""
        body = self._who() | {"transaction_timeout_ms": TRANSACTION_TIMEOUT_MS}
        answer = await self._ask(ApiKey.INIT_PRODUCER_ID, 4, body, lambda answer: answer.error_code)
        self._identity = answer.producer_id, answer.producer_epoch
        self._sequences.clear()
        self._must_bump = False

    async def prepare_next(self) -> None:
        """After a send of which nobody knows: a new epoch, so that it can't arrive in a later transaction (KIP-360)."""
        if self._must_bump:
            await self.begin_life()

    async def add_partitions(self, partitions: list[str]) -> None:
        topics: dict[str, list[int]] = {}
        for name in partitions:
            topic, number = partition_of(name)
            topics.setdefault(topic, []).append(number)
        body = self._who() | {"topics": [{"name": topic, "partitions": found} for topic, found in topics.items()]}
        await self._ask(
            ApiKey.ADD_PARTITIONS_TO_TXN, 3, body, lambda answer: answer.results[0].partitions[0].error_code
        )

    async def send(self, name: str, values: list[Value], time_ms: int) -> int:
        """Send one batch; return its offset, -1 within a transaction. Raises Refused, GaveUp."""
        topic, number = partition_of(name)
        producer_id, epoch = self._identity
        sequence = self._sequences.get(name, 0)
        batch = build_batch(
            [Message(str(value).encode(), timestamp_ms=time_ms) for value in values],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=self._transactional_id is not None,
        )
        data = {"name": topic, "partition_data": [{"index": number, "records": batch}]}
        body = {"transactional_id": self._transactional_id, "acks": -1, "timeout_ms": 5_000, "topic_data": [data]}
        try:
            answer = await self._ask(
                ApiKey.PRODUCE, 8, body, lambda answer: answer.responses[0].partition_responses[0].error_code
            )
        except (Refused, GaveUp):
            self._must_bump = True
            raise
        self._sequences[name] = sequence + len(values)
        return int(answer.responses[0].partition_responses[0].base_offset)

    async def send_offsets(self, group: str, offsets: dict[str, int]) -> None:
        """Commit a group's offsets within the transaction."""
        await self._ask(
            ApiKey.ADD_OFFSETS_TO_TXN, 3, self._who() | {"group_id": group}, lambda answer: answer.error_code
        )
        topics = [
            {
                "name": partition_of(name)[0],
                "partitions": [{"partition_index": partition_of(name)[1], "committed_offset": offset}],
            }
            for name, offset in offsets.items()
        ]
        await self._ask(
            ApiKey.TXN_OFFSET_COMMIT,
            3,
            self._who() | {"group_id": group, "topics": topics},
            lambda answer: answer.topics[0].partitions[0].error_code,
        )

    async def end(self, *, committed: bool) -> None:
        await self._ask(ApiKey.END_TXN, 3, self._who() | {"committed": committed}, lambda answer: answer.error_code)
