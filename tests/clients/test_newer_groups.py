"""The newer protocol of consumer groups (KIP-848) is refused aloud: nobody waits for it in silence."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError

from tests.broker_process import BrokerProcess

SECONDS = 60


def test_librdkafka_says_that_the_newer_protocol_is_not_there(broker: BrokerProcess) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": "newer",
            "group.protocol": "consumer",
            "log_level": 0,
        }
    )
    consumer.subscribe(["newer"])
    try:
        message = consumer.poll(SECONDS)
        assert message is not None, "it waits in silence"
        error = message.error()
        assert error is not None and error.code() == KafkaError._FATAL
        assert "ConsumerGroupHeartbeat" in error.str() and "not supported" in error.str()
    finally:
        consumer.close()
