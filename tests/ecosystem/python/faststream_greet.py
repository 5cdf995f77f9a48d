"""Greets with FastStream, as its quick start does, through aiokafka or confluent-kafka, as KIND says."""

from __future__ import annotations

import os

from faststream import FastStream

if os.environ["KIND"] == "confluent":
    from faststream.confluent import KafkaBroker
else:
    from faststream.kafka import KafkaBroker

broker = KafkaBroker(os.environ["BROKER"])
app = FastStream(broker)


@broker.subscriber("names", group_id="greeters", auto_offset_reset="earliest")
@broker.publisher("greetings")
async def greet(name: str) -> str:
    """The answer to each message."""
    return f"hello {name}"
