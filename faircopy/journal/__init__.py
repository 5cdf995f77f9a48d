"""Journals: streams of entries in preallocated segments, group commit, and the reverse linked list."""
