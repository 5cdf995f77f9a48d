"""Shards: sets of journals with one leader each, and which shard keeps what."""
