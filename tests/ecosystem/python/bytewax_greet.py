"""Greets with Bytewax, as its example of input from and output to Kafka does."""

from __future__ import annotations

import os

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSinkMessage, KafkaSourceMessage
from bytewax.connectors.kafka import operators as kop
from bytewax.dataflow import Dataflow

brokers = [os.environ["BROKER"]]


def greet(message: KafkaSourceMessage) -> KafkaSinkMessage:
    """The answer to each message."""
    return KafkaSinkMessage(message.key, b"hello " + message.value)


flow = Dataflow("greet")
names = kop.input("names", flow, brokers=brokers, topics=["names"])
errors = op.inspect("errors", names.errs).then(op.raises, "crash-on-err")
greetings = op.map("greet", names.oks, greet)
kop.output("greetings", greetings, brokers=brokers, topic="greetings")
