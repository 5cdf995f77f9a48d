"""Sharing the event loop: turns for long work, work that repeats itself, and telling those who wait."""
