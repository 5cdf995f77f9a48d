"""TxnOffsetCommit: adds offsets to a transaction, as drafts in the group's offsets partition.

Version 5 is of transactions v2: it adds the partition to the transaction (KIP-890). Version 6 has topic ids.
"""

from __future__ import annotations

from collections.abc import Hashable

from faircopy.errors import FaircopyError
from faircopy.groups.offset_requests import sort_offsets
from faircopy.groups.offsets import Offsets
from faircopy.partition.partition import NoOpenTransaction
from faircopy.serving.refusals import log_reason
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.transactions.decisions import TransactionRefused
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 28 TxnOffsetCommit 0-5 flexible 3+
  request
    transactional_id                string
    group_id                        string
    producer_id                     int64
    producer_epoch                  int16
    generation_id                   int32      3+     = -1
    member_id                       string     3+     = ""
    group_instance_id               string?    3+     = null
    topics                          []
        name                        string
        partitions                  []
            partition_index         int32
            committed_offset        int64
            committed_leader_epoch  int32      2+     = -1
            committed_metadata      string?           = null
  response
    throttle_time_ms                int32             = 0
    topics                          []
        name                        string
        partitions                  []
            partition_index         int32
            error_code              int16
""")


async def txn_offset_commit(request: Message, context: Context) -> Body:
    """TxnOffsetCommit: adds drafts to the group's offsets partition."""
    parts = context.parts
    offsets = await sort_offsets(request.topics, parts.hosted, parts.clock.steady_ms(), context.pace)
    error = parts.shards.groups_of(request.group_id).check_txn_offset_commit(request)
    if not error and (accepted := offsets.accepted):
        error = await commit_draft(request, accepted, context)
    return await offsets.answer(request.topics, error, context.pace)


async def commit_draft(request: Message, offsets: Offsets, context: Context) -> ErrorCode:
    """Put the offsets into the producer's open transaction."""
    shards = context.parts.shards
    coordinator, journals = (
        shards.coordinator_of(request.transactional_id),
        shards.offsets_of(request.group_id),
    )
    identity = (request.transactional_id, request.producer_id, request.producer_epoch)
    try:
        coordinator.admit_offsets(*identity, context.sent(content_of(request.group_id, offsets)))
        await journals.commit_draft(request.group_id, offsets, *identity, coordinator.append_draft)
    except TransactionRefused as error:
        log_reason(error)
        return error.code
    except NoOpenTransaction as error:
        log_reason(error)
        return coordinator.refusal_of_draft(*identity)
    except FaircopyError as error:
        log_reason(error)
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return ErrorCode.NONE


def content_of(group: str, offsets: Offsets) -> Hashable:
    """The content of a request for comparison with a retry: everything but the time."""
    return group, *((place, *offset[:3]) for place, offset in offsets.items())


ROUTE = Route(SCHEMA, txn_offset_commit, newest=4)
