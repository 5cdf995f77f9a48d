"""Scenarios as text: scripts, and what comes of them."""
