"""Producers, transactions and consumers, all on confluent-kafka."""
