"""faircopy's own API EndJointTransaction: commits or aborts what the members of a joint group have written.

A commit names the members that count, by their producer ids, and is answered once it can't be lost. A
repeated one is answered like the first.
"""

from __future__ import annotations

from faircopy.serving.codes import message_of
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.transactions.decisions import TransactionRefused
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 20003 EndJointTransaction 0 flexible 0+
  request
    group          string
    run            string
    key            int64
    committed      bool
    producer_ids   []int64
  response
    error_code     int16
    error_message  string?  = null
""")


async def end_joint_transaction(request: Message, context: Context) -> Body:
    """EndJointTransaction."""
    joint = context.parts.shards.coordinator_of(request.group).joint
    try:
        if request.committed:
            await joint.commit(request.group, request.run, request.key, request.producer_ids)
        else:
            await joint.abort(request.group, request.run, request.key)
    except TransactionRefused as error:
        return {"error_code": error.code, "error_message": message_of(error)}
    return {"error_code": ErrorCode.NONE}


ROUTE = Route(SCHEMA, end_joint_transaction, is_advertised=False)
