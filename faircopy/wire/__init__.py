"""The Kafka protocol as bytes: record batches, frames and messages. Pure."""
