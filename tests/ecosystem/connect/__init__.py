"""Kafka Connect: a worker of its own, with connectors that are made through its REST interface."""
