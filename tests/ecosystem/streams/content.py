"""What Kafka Streams must find with any broker: what it logs, and what it made."""

from __future__ import annotations

import re

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from tests.ecosystem.streams.counting import Counting
from tests.ecosystem.streams.installed import CHANGELOG

WAIT_SECONDS = 60.0


def ensure_streams_is_content(work: Counting) -> None:
    """It saw the offsets of what it wrote, and read its state from a topic that says that it is compacted."""
    log = work.application.log
    assert "in produce response" not in log, work.application.end_of_log
    restored = map(int, re.findall(r"with a total number of (\d+) records", log))
    assert max(restored, default=0) > 0, work.application.end_of_log
    assert cleanup_policy(work.broker.address, CHANGELOG) == "compact"


def cleanup_policy(broker: str, topic: str) -> str:
    """What the broker says of a topic."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": broker})  # it must outlive the question
    (answer,) = admin.describe_configs([resource]).values()
    return str(answer.result(WAIT_SECONDS)["cleanup.policy"].value)
