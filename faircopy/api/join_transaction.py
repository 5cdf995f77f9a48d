"""faircopy's own API JoinTransaction: makes a member of a joint group (docs/CLIENT.md).

The answer has a transactional id, a producer id and an epoch, with which the member writes by ordinary
AddPartitionsToTxn and Produce. If the key is committed already, it says so, and there is nothing to write.
"""

from __future__ import annotations

from faircopy.serving.codes import message_of
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.transactions.decisions import TransactionRefused
from faircopy.transactions.joint_group import Membership
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 20002 JoinTransaction 0 flexible 0+
  request
    group             string
    run               string
    key               int64
    member            string
    timeout_ms        int32
  response
    error_code        int16
    error_message     string?  = null
    is_committed      bool
    transactional_id  string
    producer_id       int64
    producer_epoch    int16
""")
NOBODY = {"is_committed": False, "transactional_id": "", "producer_id": -1, "producer_epoch": -1}


async def join_transaction(request: Message, context: Context) -> Body:
    """JoinTransaction."""
    membership = Membership(request.group, request.run, request.key, request.member)
    coordinator = context.parts.shards.coordinator_of(request.group)
    try:
        joined = await coordinator.joint.join(membership, request.timeout_ms, context.connection)
    except TransactionRefused as error:
        return NOBODY | {"error_code": error.code, "error_message": message_of(error)}
    if joined is None:
        return NOBODY | {"error_code": ErrorCode.NONE, "is_committed": True}
    return {"error_code": ErrorCode.NONE, "is_committed": False} | joined._asdict()


ROUTE = Route(SCHEMA, join_transaction, is_advertised=False)
