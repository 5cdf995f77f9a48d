"""Errors that clients in other languages are told: programs that do what a trial asks."""
