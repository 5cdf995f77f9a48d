"""Mutants: faircopy with one rule broken. The simulation or the tests must notice every one of them.

All of them by name; importing the files in which they are has registered them.
"""

from __future__ import annotations

from tests.mutants import (
    administration,
    catalogue,
    cuts,
    durability,
    hostile,
    joint,
    journals,
    leadership,
    readers,
    recovery,
    replica_sets,
    replicas,
    replication,
    space,
    transactions,
)
from tests.mutants.registry import MUTANTS

__all__ = [
    "MUTANTS",
    "administration",
    "catalogue",
    "cuts",
    "durability",
    "hostile",
    "joint",
    "journals",
    "leadership",
    "readers",
    "recovery",
    "replica_sets",
    "replicas",
    "replication",
    "space",
    "transactions",
]
