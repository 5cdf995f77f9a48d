"""DescribeLogDirs: sizes of the visible logs, and of the disk that holds them (KIP-113, KIP-827)."""

from __future__ import annotations

from pathlib import Path

from faircopy.serving.route import Body, Context, Message, Route
from faircopy.storage.paths import space_around
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 35 DescribeLogDirs 1-5 flexible 2+
  request
    topics                       []?
        topic                    string
        partitions               []int32
  response
    throttle_time_ms             int32             = 0
    error_code                   int16      3+
    results                      []
        error_code               int16
        log_dir                  string
        topics                   []
            name                 string
            partitions           []
                partition_index  int32
                partition_size   int64
                offset_lag       int64
                is_future_key    bool
        total_bytes              int64      4+     = -1
        usable_bytes             int64      4+     = -1
        is_cordoned              bool       5+     = false
""")


async def describe_log_dirs(request: Message, context: Context) -> Body:
    """DescribeLogDirs: sizes of the visible logs."""
    directory = str(context.parts.directory.log)
    wanted = (
        {topic.topic: set(topic.partitions) for topic in request.topics}
        if request.topics is not None
        else None
    )
    topics = [
        {
            "name": hosted.topic.name,
            "partitions": [
                {
                    "partition_index": partition.name.partition,
                    "partition_size": partition.log.size_bytes,
                    "offset_lag": 0,
                    "is_future_key": False,
                }
                for partition in hosted.partitions
                if wanted is None or partition.name.partition in wanted[hosted.topic.name]
            ],
        }
        async for hosted in context.pace.over(list(context.parts.hosted.topics.values()))
        if wanted is None or hosted.topic.name in wanted
    ]
    space = space_around(Path(directory)) if context.version >= 4 else None
    return {
        "error_code": ErrorCode.NONE,
        "results": [
            {
                "error_code": ErrorCode.NONE,
                "log_dir": directory,
                "topics": topics,
                "total_bytes": space.total_bytes if space else -1,
                "usable_bytes": space.usable_bytes if space else -1,
            }
        ],
    }


ROUTE = Route(SCHEMA, describe_log_dirs)
