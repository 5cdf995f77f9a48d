"""A model of each commit protocol on a virtual clock: its messages and durable writes, at any distance."""

from bench.distance.grid import check, distances

__all__ = ["check", "distances"]
