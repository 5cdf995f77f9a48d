"""Many transactions that stay open, each with its own transactional id and with one small batch in one
partition.

They are opened over raw connections, since librdkafka would need threads and a connection for each of them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from bench.load.message import UNMEASURED, stamped
from faircopy.api.routes import schema_of
from faircopy.client.connection import ensure_ok
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.codec import Message as Answer
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.messages import decode_response, encode_request
from faircopy.wire.records import NewRecord, build_batch

CONNECTIONS = 32
FLOWS_PER_CONNECTION = 4
CLIENT_ID = "bench-open-transactions"
TIMEOUT_MS = 900_000  # the longest that both brokers allow by default
OF_TRANSACTIONS = 1  # the key type of FindCoordinator
ALL_IN_SYNC = -1
PRODUCE_TIMEOUT_MS = 30_000
PAUSE_SECONDS = 0.05
TRIES_MAX = 600
SILENCE_SECONDS_MAX = 60.0

# Kafka answers NOT_ENOUGH_REPLICAS to a producer older than transactions v2 while it can't verify it
# (KIP-890).
COME_AGAIN = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}


class Call(NamedTuple):
    """A request in a version that both brokers know, and the place of the error code in its answer."""

    api_key: ApiKey
    version: int
    outcome: Callable[[Answer], Answer]


FIND_COORDINATOR = Call(ApiKey.FIND_COORDINATOR, 3, lambda answer: answer)
INIT_PRODUCER_ID = Call(ApiKey.INIT_PRODUCER_ID, 4, lambda answer: answer)
ADD_PARTITIONS = Call(ApiKey.ADD_PARTITIONS_TO_TXN, 3, lambda answer: answer.results[0].partitions[0])
PRODUCE = Call(ApiKey.PRODUCE, 9, lambda answer: answer.responses[0].partition_responses[0])


class Pipeline:
    """One connection with several requests in flight; a broker answers them in order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._turn = asyncio.Lock()
        self._correlation_id = 0

    async def call(self, call: Call, body: dict[str, Any]) -> Answer:
        """Ask until the broker does not want to be asked again. Raises RequestFailed, OSError, EOFError."""
        for _ in range(TRIES_MAX):
            outcome = call.outcome(await self._ask(call, body))
            if outcome.error_code not in COME_AGAIN:
                break
            await asyncio.sleep(PAUSE_SECONDS)
        ensure_ok(outcome.error_code, None, f"opening transactions: {call.api_key.name}")
        return outcome

    async def _ask(self, call: Call, body: dict[str, Any]) -> Answer:
        self._correlation_id += 1
        self._writer.write(
            encode_request(schema_of(call.api_key), call.version, self._correlation_id, CLIENT_ID, body)
        )
        # The lock is fair: waiters get the answers in the order of their requests.
        async with self._turn:
            size = int.from_bytes(await self._reader.readexactly(4), "big")
            frame = await self._reader.readexactly(size)
        return decode_response(schema_of(call.api_key), call.version, memoryview(frame))[1]

    def close(self) -> None:
        """Close the connection without waiting for requests in flight."""
        self._writer.close()


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


@contextmanager
def open_transactions(
    address: str, topic: str, partitions: int, wanted: int, seconds_max: float
) -> Iterator[int]:
    """Open `wanted` transactions over the first partitions of a topic, or as many as `seconds_max` allow.

    Yields their number. The connections are closed at the end; the transactions stay open in the broker for
    up to 15 minutes. Raises RequestFailed, OSError, EOFError, TimeoutError.
    """
    with asyncio.Runner() as runner:
        pipelines = runner.run(connect(address))
        try:
            yield runner.run(open_all(pipelines, topic, partitions, wanted, seconds_max))
        finally:
            runner.run(close(pipelines))


async def connect(address: str) -> list[Pipeline]:
    """The connections over which transactions are opened. Raises OSError."""
    host, _, port = address.rpartition(":")
    return [Pipeline(*await asyncio.open_connection(host, int(port))) for _ in range(CONNECTIONS)]


async def close(pipelines: list[Pipeline]) -> None:
    """Close all connections."""
    for pipeline in pipelines:
        pipeline.close()


async def open_all(
    pipelines: list[Pipeline], topic: str, partitions: int, wanted: int, seconds_max: float
) -> int:
    """Many flows at once, each of which opens one transaction after the other. Returns how many are open."""
    numbers = iter(range(wanted))
    until = time.monotonic() + seconds_max

    async def flow(pipeline: Pipeline) -> int:
        opened = 0
        while time.monotonic() < until and (number := next(numbers, None)) is not None:
            await open_one(pipeline, f"{topic}-{number}", TopicPartition(topic, number % partitions))
            opened += 1
        return opened

    async with asyncio.timeout(seconds_max + SILENCE_SECONDS_MAX):
        # Kafka creates the topic of transaction states when it is first asked for a coordinator.
        await pipelines[0].call(FIND_COORDINATOR, {"key": topic, "key_type": OF_TRANSACTIONS})
        return sum(
            await asyncio.gather(*(flow(each) for each in pipelines for _ in range(FLOWS_PER_CONNECTION)))
        )


async def open_one(pipeline: Pipeline, transactional_id: str, partition: TopicPartition) -> None:
    """One transaction, up to the ack of its batch."""
    begun = await pipeline.call(
        INIT_PRODUCER_ID, {"transactional_id": transactional_id, "transaction_timeout_ms": TIMEOUT_MS}
    )
    identity = {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
    topics = [{"name": partition.topic, "partitions": [partition.partition]}]
    await pipeline.call(ADD_PARTITIONS, {"transactional_id": transactional_id, **identity, "topics": topics})
    message = NewRecord(stamped(UNMEASURED), timestamp_ms=time.time_ns() // 1_000_000)
    batch = build_batch([message], **identity, base_sequence=0, transactional=True)
    await pipeline.call(PRODUCE, produce_body(transactional_id, partition, batch))


def produce_body(transactional_id: str, partition: TopicPartition, batch: bytes) -> dict[str, Any]:
    """A Produce request of one batch in one partition."""
    return {
        "transactional_id": transactional_id,
        "acks": ALL_IN_SYNC,
        "timeout_ms": PRODUCE_TIMEOUT_MS,
        "topic_data": [
            {"name": partition.topic, "partition_data": [{"index": partition.partition, "records": batch}]}
        ],
    }
