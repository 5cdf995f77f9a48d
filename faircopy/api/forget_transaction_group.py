"""faircopy's own API ForgetTransactionGroup: forgets a joint group, and which of its keys are committed."""

from __future__ import annotations

from faircopy.serving.codes import message_of
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.transactions.decisions import TransactionRefused
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 20004 ForgetTransactionGroup 0 flexible 0+
  request
    group          string
  response
    error_code     int16
    error_message  string?  = null
""")


async def forget_transaction_group(request: Message, context: Context) -> Body:
    """ForgetTransactionGroup. A group that is not known is forgotten already."""
    try:
        await context.parts.shards.coordinator_of(request.group).joint.forget(request.group)
    except TransactionRefused as error:
        return {"error_code": error.code, "error_message": message_of(error)}
    return {"error_code": ErrorCode.NONE}


ROUTE = Route(SCHEMA, forget_transaction_group, is_advertised=False)
