"""How each system looks, wherever it is shown: a colour, a dash and a marker.

The hues are those of Okabe and Ito, which people with any kind of colour vision can tell apart, made darker
or lighter to suit the page's background. Solid lines are durable by fsync, dashed ones by the page cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SOLID = "solid"
DASHED = (0, (4, 2))


@dataclass(frozen=True)
class Look:
    """The look of one system: its colours on a light and a dark page, and matplotlib's dash and marker."""

    system: str
    light: str
    dark: str
    dash: str | tuple[int, tuple[int, ...]]
    marker: str

    @property
    def variable(self) -> str:
        """The CSS variable that holds its colour."""
        return "--system-" + self.system.replace(" ", "-")


LOOKS = [
    Look("local-copy fsync", "#0072b2", "#4da9e0", SOLID, "o"),
    Look("local-copy os", "#3d9edb", "#9bd6f9", DASHED, "o"),
    Look("replica set fsync", "#00487a", "#7cc4f0", SOLID, "h"),
    Look("remote-copy fsync", "#008f68", "#2fc79b", SOLID, "s"),
    Look("markers fsync", "#b87a00", "#f0b429", SOLID, "^"),
    Look("parallel-prepare fsync", "#b5528a", "#e394c0", SOLID, "D"),
    Look("none fsync", "#6f6f6f", "#a3a3a3", SOLID, "X"),
    Look("none os", "#8f8f8f", "#c9c9c9", DASHED, "X"),
    Look("kafka", "#d55e00", "#ff8440", DASHED, "v"),
    Look("kafka fsync", "#8a2f00", "#ffb089", SOLID, "v"),
    Look("kafka set", "#a84300", "#ff9c66", DASHED, "<"),
]
OTHER = Look("other", "#44474a", "#c4c7ca", SOLID, "P")
BY_SYSTEM = {look.system: look for look in LOOKS}


def look_of(name: str) -> Look:
    """The look of a system."""
    return BY_SYSTEM.get(name, OTHER)


def in_order(names: Iterable[str]) -> list[str]:
    """Names without repetition, in the page's order; unknown ones come last, by name."""
    ranks = {look.system: rank for rank, look in enumerate(LOOKS)}
    return sorted(set(names), key=lambda name: (ranks.get(look_of(name).system, len(ranks)), name))
