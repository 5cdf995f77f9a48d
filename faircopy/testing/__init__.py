"""A broker for tests, in which things go wrong on request: docs/TESTING.md.

    from faircopy.testing import Broker

    with Broker() as broker:
        topic = broker.create_topic()
        load(broker.confluent_kafka.producer("loader"), topic)
        assert broker.values(topic) == [b"1", b"2"]

The fixtures for pytest are in `pytest_faircopy.py`. Other languages have `faircopy start --ephemeral`.
"""

from faircopy.testing.broker import Broker
from faircopy.testing.child import BrokerEnded, CannotStart, OrderRefused

__all__ = ["Broker", "BrokerEnded", "CannotStart", "OrderRefused"]
