"""A broker in one of its lives. Pure."""

from __future__ import annotations

from typing import NamedTuple


class Life(NamedTuple):
    """What one life has acknowledged says nothing of the next one, which may have lost it (A8)."""

    broker: int
    incarnation: int

    def __str__(self) -> str:
        return f"broker {self.broker} in its life {self.incarnation}"
