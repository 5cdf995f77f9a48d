"""EndTxn: commits or aborts a transaction. A commit is answered once it can't be lost any more.

Version 5 is of transactions v2: each end raises the producer's epoch (KIP-890).
"""

from __future__ import annotations

from faircopy.serving.fencing import fenced_code
from faircopy.serving.refusals import log_reason
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.transactions.decisions import TransactionRefused
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 26 EndTxn 0-5 flexible 3+
  request
    transactional_id  string
    producer_id       int64
    producer_epoch    int16
    committed         bool
  response
    throttle_time_ms  int32             = 0
    error_code        int16
    producer_id       int64      5+     = -1
    producer_epoch    int16      5+     = -1
""")


async def end_txn(request: Message, context: Context) -> Body:
    """EndTxn. A commit is answered once it can't be lost any more."""
    try:
        await context.parts.shards.coordinator_of(request.transactional_id).end(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            commit=request.committed,
            sent=context.sent(request.committed),
            fenced=fenced_code(context.version),
        )
    except TransactionRefused as error:
        log_reason(error)
        return {"error_code": error.code}
    return {"error_code": ErrorCode.NONE}


ROUTE = Route(SCHEMA, end_txn, newest=4)
