"""What all processes of a soak know: topics, partitions, client libraries, times."""

from __future__ import annotations

import time
from typing import cast

from tests.clients import aiokafka_adapter, confluent_adapter, kafka_python_adapter
from tests.clients.adapter import Client, Place

TABLE = "both"
TABLE_TOPICS = ("orders", "parcels")
TOPICS = {"orders": 2, "parcels": 1, "notes": 1}
PLACES: list[Place] = [(topic, number) for topic, count in TOPICS.items() for number in range(count)]
MEMBERS_GROUP = "members"

LIBRARIES: dict[str, Client] = {
    adapter.name: cast(Client, adapter)
    for adapter in (confluent_adapter, kafka_python_adapter, aiokafka_adapter)
}

TRANSACTION_TIMEOUT_SECONDS = 6.0


def name_of(place: Place) -> str:
    """A partition's name in histories, such as `orders-0`."""
    return f"{place[0]}-{place[1]}"


def now() -> float:
    """Seconds on a clock that all processes of a machine share, and that never jumps."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)
