"""Kafka's own tools for measuring a broker, with Kafka's own client: fetched, run, and read."""
