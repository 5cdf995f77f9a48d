"""Replication: what brokers of a set say to each other, and what is durable in all of them."""
