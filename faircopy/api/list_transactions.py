"""ListTransactions: all, or those in some states, of some producers, or above an age (KIP-664).

Version 2 has a regular expression (KIP-1152): one of Python's could hold up everybody.
"""

from __future__ import annotations

from collections.abc import Iterator

from faircopy.serving.parts import Parts
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.transactions.state import TransactionState
from faircopy.transactions.transaction import Producer
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 66 ListTransactions 0-1 flexible 0+
  request
    state_filters          []string
    producer_id_filters    []int64
    duration_filter        int64      1+     = -1
  response
    throttle_time_ms       int32             = 0
    error_code             int16
    unknown_state_filters  []string
    transaction_states     []
        transactional_id   string
        producer_id        int64
        transaction_state  string
""")


async def list_transactions(request: Message, context: Context) -> Body:
    """ListTransactions (KIP-664)."""
    known = {state.value for state in TransactionState} | {"Empty"}
    now_ms = context.parts.clock.steady_ms()
    return {
        "error_code": ErrorCode.NONE,
        "unknown_state_filters": [state for state in request.state_filters if state not in known],
        "transaction_states": [
            {
                "transactional_id": producer.transactional_id,
                "producer_id": producer.producer_id,
                "transaction_state": producer.state_name,
            }
            for producer in producers(context.parts)
            if is_wanted(producer, request, now_ms)
        ],
    }


def producers(parts: Parts) -> Iterator[Producer]:
    """The producers of all transactional ids. There may be many: keep none of those that sleep."""
    for home in parts.shards.metadata_journals():
        yield from home.table.producers.values()


def is_wanted(producer: Producer, request: Message, now_ms: int) -> bool:
    """Whether the filters of a ListTransactions request let a transactional id through."""
    if request.state_filters and producer.state_name not in request.state_filters:
        return False
    if request.producer_id_filters and producer.producer_id not in request.producer_id_filters:
        return False
    if request.duration_filter >= 0:
        transaction = producer.current or next(iter(producer.ending.values()), None)
        return transaction is not None and now_ms - transaction.started_ms > request.duration_filter
    return True


ROUTE = Route(SCHEMA, list_transactions)
