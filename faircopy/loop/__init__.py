"""Sharing the event loop: turns for long work, periodic work, and notifying waiters."""
