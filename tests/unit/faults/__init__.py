"""Faults that are asked for: which they are, and to which requests they happen."""
