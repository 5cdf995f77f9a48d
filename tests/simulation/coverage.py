"""What a simulation has met: how often each fault occurred, and which transitions were taken."""

from __future__ import annotations

from collections import Counter


class Coverage:
    """Counts by name. Announced names that were never met are what a run did not cover."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def announce(self, *names: str) -> None:
        """Announce names that should be met."""
        for name in names:
            self.counts[name] += 0

    def hit(self, name: str) -> None:
        self.counts[name] += 1

    def add(self, other: Coverage, prefix: str = "") -> None:
        """Add what another has met, under names with a prefix."""
        for name, count in other.counts.items():
            self.counts[prefix + name] += count

    @property
    def missed(self) -> list[str]:
        return sorted(name for name, count in self.counts.items() if not count)
