"""What is left of a broker disturbs neither the next one of its world nor the next world."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

from faircopy.api.routes import schema_of
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.messages import encode_request
from tests.fuzz.world import TOPIC, World

PARTITIONS = 1_000  # so many that a thread reads the request
LARGE_PRODUCE: dict[str, Any] = {
    "transactional_id": None,
    "acks": -1,
    "timeout_ms": 1_000,
    "topic_data": [{"name": TOPIC, "partition_data": [{"index": 0, "records": None}] * PARTITIONS}],
}


async def begin_two_large_requests(world: World) -> None:
    """One is on the thread for large requests, and the other waits for it."""
    for _ in range(2):
        world.connect().send(encode_request(schema_of(ApiKey.PRODUCE), 9, 1, "large", LARGE_PRODUCE))
    for _ in range(3):
        await asyncio.sleep(0)


def test_requests_under_way_end_with_their_world() -> None:
    """They wake each other on their way out, when their loop has been closed."""
    first, second = World(), World()
    first.run(begin_two_large_requests(first))
    first.close()
    del first

    async def collect() -> None:
        gc.collect()

    second.feed(b"", collect())
    second.close()


def test_a_broker_starts_on_the_disk_of_one_that_was_killed() -> None:
    """Its lock goes with its process."""
    world = World()
    world.restart()
    world.close()
