"""Which partitions a member chooses for records without a key, while their number changes."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from faircopy.client.member import JointMember

TOPIC = "orders"


class ChangingTopic:
    """In place of `Brokers`: a topic whose number of partitions is that which was set last."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions

    async def partitions_of(self, _topic: str, _timeout_seconds: float) -> int:
        return self.partitions


def test_no_partition_is_chosen_that_is_not_there_any_more() -> None:
    """The topic was made anew, with fewer of them."""
    topic = ChangingTopic(3)
    member = JointMember(cast(Any, topic), "t", producer_id=2, epoch=0, timeout_seconds=1)
    asyncio.run(member.send(TOPIC, b"value"))
    topic.partitions = 1
    asyncio.run(member.send(TOPIC, b"value"))
    assert list(member._outgoing) == [(TOPIC, 2), (TOPIC, 0)]
