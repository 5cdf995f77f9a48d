"""InitProducerId: a producer id and an epoch that fences all earlier instances (KIP-98, KIP-360).

Version 6 is for transactions with two phases (KIP-939).
"""

from __future__ import annotations

from faircopy.serving.fencing import fenced_code
from faircopy.serving.refusals import log_reason
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.transactions.decisions import TransactionRefused, asked_again
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 22 InitProducerId 0-5 flexible 2+
  request
    transactional_id        string?
    transaction_timeout_ms  int32
    producer_id             int64      3+     = -1
    producer_epoch          int16      3+     = -1
  response
    throttle_time_ms        int32             = 0
    error_code              int16
    producer_id             int64             = -1
    producer_epoch          int16
""")


PRODUCER_FENCED_SINCE = 4


async def init_producer_id(request: Message, context: Context) -> Body:
    """InitProducerId."""
    try:
        if request.transactional_id is None:
            with asked_again():
                producer_id, epoch = await context.parts.producer_ids.next(), 0
        elif not request.transactional_id:
            return {"error_code": ErrorCode.INVALID_REQUEST, "producer_id": -1, "producer_epoch": -1}
        else:
            coordinator = context.parts.shards.coordinator_of(request.transactional_id)
            producer_id, epoch = await coordinator.init_producer(
                request.transactional_id,
                request.transaction_timeout_ms,
                request.producer_id,
                request.producer_epoch,
                context.connection,
            )
    except TransactionRefused as error:
        log_reason(error)
        code = error.code
        if code is ErrorCode.PRODUCER_FENCED:
            code = fenced_code(context.version, PRODUCER_FENCED_SINCE)
        return {"error_code": code, "producer_id": -1, "producer_epoch": -1}
    return {"error_code": ErrorCode.NONE, "producer_id": producer_id, "producer_epoch": epoch}


ROUTE = Route(SCHEMA, init_producer_id)
