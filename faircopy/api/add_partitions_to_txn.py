"""AddPartitionsToTxn: all the partitions, or none.

It stops at version 3: only brokers send version 4 and above, so Kafka's schema prefixes these fields with
`v3_and_below`.
"""

from __future__ import annotations

from faircopy.partition.partition import Partition
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.serving.taking_part import take_part
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 24 AddPartitionsToTxn 0-3 flexible 3+
  request
    transactional_id         string
    producer_id              int64
    producer_epoch           int16
    topics                   []
        name                 string
        partitions           []int32
  response
    throttle_time_ms         int32             = 0
    results                  []
        name                 string
        partitions           []
            partition_index  int32
            error_code       int16
""")


async def add_partitions_to_txn(request: Message, context: Context) -> Body:
    """AddPartitionsToTxn: all the partitions, or none."""
    pace = context.pace
    results: dict[str, list[Body]] = {topic.name: [] for topic in request.topics}
    found: dict[tuple[str, int], Partition | None] = {}

    def find(place: tuple[str, int]) -> None:
        found[place] = context.parts.hosted.find(*place)

    def answer(place: tuple[str, int]) -> None:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if found[place] is None else code
        results[place[0]].append({"partition_index": place[1], "error_code": error})

    await pace.each(find, ((topic.name, number) for topic in request.topics for number in topic.partitions))
    pace.ensure_wanted()
    sound = [partition for partition in found.values() if partition is not None]
    code = ErrorCode.OPERATION_NOT_ATTEMPTED
    if len(sound) == len(found):
        code = await take_part(request, context, sound, tuple(found))
    await pace.each(answer, found)
    return {"results": [{"name": topic, "partitions": partitions} for topic, partitions in results.items()]}


ROUTE = Route(SCHEMA, add_partitions_to_txn)
