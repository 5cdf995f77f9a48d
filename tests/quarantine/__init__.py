"""Tests that fail by accident, until their cause is known: no job of the gate runs them, `make proof` does.

Each file says `SINCE`, the date on which it came here, and `CAUSE`, what is known of why it fails.
"""
