"""faircopy: a transactional log broker, Kafka-compatible on the wire. What has not committed is never in the log."""

__version__ = "0.1.0"
