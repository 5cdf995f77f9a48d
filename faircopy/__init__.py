"""faircopy: a transactional log broker, Kafka-compatible on the wire. Only committed data is in the log."""

__version__ = "0.1.0"
