"""Worlds in which machines are one replica set: a leader with its clients, and real followers."""
