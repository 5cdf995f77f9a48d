"""Transactions: a pure table of transitions, their journals, and the coordinator that carries them out."""
