"""Spark with its own Kafka source, in a process of its own."""
