"""DescribeTransactions: their states and partitions (KIP-664)."""

from __future__ import annotations

from faircopy.serving.parts import Parts
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.storage.clock import Clock
from faircopy.transactions.decisions import TransactionRefused
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 65 DescribeTransactions 0 flexible 0+
  request
    transactional_ids              []string
  response
    throttle_time_ms               int32             = 0
    transaction_states             []
        error_code                 int16
        transactional_id           string
        transaction_state          string
        transaction_timeout_ms     int32
        transaction_start_time_ms  int64
        producer_id                int64
        producer_epoch             int16
        topics                     []
            topic                  string
            partitions             []int32
""")


NOTHING: Body = {
    "transaction_state": "",
    "transaction_timeout_ms": 0,
    "transaction_start_time_ms": -1,
    "producer_id": -1,
    "producer_epoch": -1,
}


async def describe_transactions(request: Message, context: Context) -> Body:
    """DescribeTransactions (KIP-664). A transactional id that is requested twice is described once."""
    names = context.pace.over(dict.fromkeys(request.transactional_ids))
    return {"transaction_states": [describe(context.parts, name) async for name in names]}


def describe(parts: Parts, transactional_id: str) -> Body:
    """The latest transaction of a transactional id."""
    answer: Body = {"transactional_id": transactional_id, "topics": []}
    try:
        table = parts.shards.coordinator_of(transactional_id).journal_of(transactional_id).table
    except TransactionRefused as error:
        return answer | NOTHING | {"error_code": error.code}
    producer = table.producers.get(transactional_id)
    if producer is None:
        return answer | NOTHING | {"error_code": ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}
    transaction = producer.current or next(reversed(producer.ending.values()), None)
    topics: dict[str, list[int]] = {}
    for name in map(parts.name_of, transaction.participants if transaction else ()):
        if name is not None:
            topics.setdefault(name.topic, []).append(name.partition)
    return answer | {
        "error_code": ErrorCode.NONE,
        "transaction_state": producer.state_name,
        "transaction_timeout_ms": producer.timeout_ms,
        "transaction_start_time_ms": wall_ms(parts.clock, transaction.started_ms) if transaction else -1,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.epoch,
        "topics": [{"topic": topic, "partitions": numbers} for topic, numbers in topics.items()],
    }


def wall_ms(clock: Clock, steady_ms: int) -> int:
    """Convert a moment of the steady clock to the wall clock."""
    return clock.wall_ms() - (clock.steady_ms() - steady_ms)


ROUTE = Route(SCHEMA, describe_transactions)
