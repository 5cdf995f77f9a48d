"""What a simulation has met: how often each fault occurred, and which transitions were taken."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

from faircopy.copier import fold
from faircopy.groups import group_state
from faircopy.transactions import state


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

    def add(self, other: Coverage) -> None:
        self.counts.update(other.counts)
        self.announce(*other.counts)

    @property
    def missed(self) -> list[str]:
        return sorted(name for name, count in self.counts.items() if not count)


class Watched(dict[Any, Any]):
    """A table of transitions that counts those that are taken."""

    def __init__(self, name: str, transitions: Mapping[Any, Any], coverage: Coverage) -> None:
        super().__init__(transitions)
        self._name = name
        self._coverage = coverage
        coverage.announce(*(self._text(key) for key in self))

    def _text(self, key: tuple[Any, Any]) -> str:
        before, event = (getattr(part, "name", "-") for part in key)
        return f"{self._name}: {before} -> {event}"

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        self._coverage.hit(self._text(key))
        return found

    def get(self, key: Any, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default


@contextlib.contextmanager
def watched(coverage: Coverage) -> Iterator[None]:
    """Count the transitions of transactions, of groups, and of transactions in partitions."""
    with contextlib.ExitStack() as stack:
        for module, name in ((state, "transaction"), (group_state, "group")):
            stack.enter_context(
                mock.patch.object(module, "TRANSITIONS", Watched(name, module.TRANSITIONS, coverage))
            )
        for kind in ("plain", "draft", "prepared", "apply", "discard", "trim"):
            stack.enter_context(counting(kind, coverage))
        yield


def counting(kind: str, coverage: Coverage) -> Any:
    """Count the entries of a kind that are folded."""
    name = f"fold: {kind}"
    coverage.announce(name)
    real = getattr(fold.PartitionState, f"fold_{kind}")

    def folded(self: fold.PartitionState, *arguments: Any) -> Any:
        coverage.hit(name)
        return real(self, *arguments)

    return mock.patch.object(fold.PartitionState, f"fold_{kind}", folded)
