"""Counts the transitions that are taken on each machine: of transactions, of groups, and of transactions in
partitions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

from faircopy.copier import fold
from faircopy.groups import group_state
from faircopy.transactions import state
from tests.simulation.coverage import Coverage
from tests.simulation.here import here

TABLES = ((state, "transaction"), (group_state, "group"))
FOLDED = ("plain", "draft", "prepared", "apply", "discard", "trim")


class Watched(dict[Any, Any]):
    """A table of transitions that counts those that are taken, each for the machine that takes it."""

    def __init__(self, name: str, transitions: Mapping[Any, Any]) -> None:
        super().__init__(transitions)
        self._name = name

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        here().coverage.hit(text_of(self._name, key))
        return found

    def get(self, key: Any, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Count what is taken meanwhile."""
    with contextlib.ExitStack() as stack:
        for module, name in TABLES:
            stack.enter_context(mock.patch.object(module, "TRANSITIONS", Watched(name, module.TRANSITIONS)))
        for kind in FOLDED:
            stack.enter_context(counting(kind))
        yield


def announce_transitions(coverage: Coverage) -> None:
    """Announce all transitions: each should be taken."""
    for module, name in TABLES:
        coverage.announce(*(text_of(name, key) for key in module.TRANSITIONS))
    coverage.announce(*map(fold_of, FOLDED))


def counting(kind: str) -> Any:
    """Count the entries of a kind that are folded."""
    name = fold_of(kind)
    real = getattr(fold.PartitionState, f"fold_{kind}")

    def folded(self: fold.PartitionState, *arguments: Any) -> Any:
        here().coverage.hit(name)
        return real(self, *arguments)

    return mock.patch.object(fold.PartitionState, f"fold_{kind}", folded)


def fold_of(kind: str) -> str:
    return f"fold: {kind}"


def text_of(name: str, key: tuple[Any, Any]) -> str:
    before, event = (getattr(part, "name", "-") for part in key)
    return f"{name}: {before} -> {event}"
