"""Shards: journals with one leader each, and which of them keeps what."""
