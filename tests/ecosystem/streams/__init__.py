"""Kafka Streams: its word count, an application that is killed."""
