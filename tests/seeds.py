"""Where the tests take their seeds from.

Each run tries new ones, and says which. `FAIRCOPY_SEED` makes them all follow from one number. So what must
pass before a change lands is the same for whoever tries it, and fails because of the change alone. New worlds
are for `make proof`, `make simulate`, `make crash-states`, `make soak` and `make fuzz`.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sys

SEED_BITS = 48
GIVEN = os.environ.get("FAIRCOPY_SEED")
# The processes that share one run of the tests must come to the same seeds; pytest-xdist gives them this.
RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID")


def seed_for(name: str) -> int:
    """A seed for what has this name, below 2**48; it is said on stderr."""
    (seed,) = seeds_for(name, 1)
    print(f"seed {seed}: {name}", file=sys.stderr)
    return seed


def seeds_for(name: str, count: int) -> list[int]:
    """So many; it is for the caller to say them where one fails."""
    source = GIVEN or RUN
    if source is None:
        return [secrets.randbits(SEED_BITS) for _ in range(count)]
    return [follow(f"{source} {name} {number}") for number in range(count)]


def follow(text: str) -> int:
    """Always the same seed for the same text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[: SEED_BITS // 8], "big")
