"""Copies of a data directory: making them from a broker's snapshot, checking them, putting them back."""
