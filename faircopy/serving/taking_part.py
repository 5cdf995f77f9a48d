"""Adds partitions, of messages or of group offsets, to a transaction."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from faircopy.errors import FaircopyError
from faircopy.journal.errors import NotEnoughReplicas
from faircopy.partition.participant import NotLed
from faircopy.partition.partition import Partition
from faircopy.serving.fencing import fenced_code
from faircopy.serving.refusals import log_reason
from faircopy.serving.route import Context, Message
from faircopy.transactions.decisions import TransactionRefused
from faircopy.wire.error_codes import ErrorCode


async def take_part(
    request: Message, context: Context, partitions: Sequence[Partition], content: Hashable
) -> ErrorCode:
    """Add partitions to the producer's transaction. `content` tells this request from others of its kind."""
    try:
        for partition in partitions:
            partition.ensure_sound()
        await context.parts.shards.coordinator_of(request.transactional_id).add_partitions(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            partitions,
            context.sent(content),
            fenced_code(context.version),
        )
    except TransactionRefused as error:
        log_reason(error)
        return error.code
    except (NotLed, NotEnoughReplicas) as error:
        log_reason(error)
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    except FaircopyError as error:
        log_reason(error)
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE
