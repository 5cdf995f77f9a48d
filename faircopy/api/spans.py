"""faircopy's own API Spans: which offsets of a partition are of which transaction.

An answer has a bounded number of spans; ask again from its `next_offset`, until that is the end. Offsets in
no span are of no transaction.

It is not advertised, since it is not part of Kafka's protocol.
"""

from __future__ import annotations

from itertools import islice

from faircopy.api.cut import find_partition, unknown
from faircopy.copier.span_chunk import Span
from faircopy.errors import FaircopyError
from faircopy.partition.hosted import HostedPartition
from faircopy.serving.codes import code_of
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.storage.sealed import DamagedState
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 20006 Spans 0 flexible 0+
  request
    topic_id            uuid       = zero
    name                string?    = null
    partition           int32
    start_offset        int64
    end_offset          int64
  response
    error_code          int16
    next_offset         int64      = -1
    log_start           int64      = -1
    spans               []         = null
        first_offset    int64
        last_offset     int64
        rank            int64
        producer_id     int64
        producer_epoch  int16
        number          int64
""")
SPANS_MAX = 1_000


async def spans(request: Message, context: Context) -> Body:
    """Spans. Those between the offsets, clipped to them and to the high watermark."""
    partition = find_partition(context.parts, request.topic_id, request.name, request.partition)
    if partition is None:
        return {"error_code": unknown(request.topic_id), "spans": []}
    try:
        partition.ensure_readable()  # first: of a damaged log, not even the ends are known
    except FaircopyError as error:
        return {"error_code": code_of(error), "spans": []}
    log_start = partition.log.start_offset
    end = min(request.end_offset, partition.log.end_offset)
    if not log_start <= request.start_offset <= end:
        return {"error_code": ErrorCode.OFFSET_OUT_OF_RANGE, "log_start": log_start, "spans": []}
    try:
        return {"error_code": ErrorCode.NONE} | page(partition, request.start_offset, end)
    except DamagedState as error:  # since the start, where all records were read
        context.parts.hosted.stop(partition, error)
        return {"error_code": code_of(error), "spans": []}


def page(partition: HostedPartition, start: int, end: int) -> Body:
    """The first of the spans."""
    found = list(islice(partition.copier.spans.between(start, end), SPANS_MAX))
    next_offset = min(found[-1].end_offset, end) if len(found) == SPANS_MAX else end
    return {
        "next_offset": next_offset,
        "log_start": partition.log.start_offset,
        "spans": [body_of(span, start, end) for span in found],
    }


def body_of(span: Span, start: int, end: int) -> Body:
    """A span, clipped."""
    return {
        "first_offset": max(span.first_offset, start),
        "last_offset": min(span.last_offset, end - 1),
        "rank": span.rank,
        "producer_id": span.transaction.producer_id,
        "producer_epoch": span.transaction.producer_epoch,
        "number": span.transaction.number,
    }


ROUTE = Route(SCHEMA, spans, is_advertised=False)
