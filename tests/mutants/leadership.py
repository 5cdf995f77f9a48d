"""Mutants of shards that are led anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from faircopy.shard import shards
from faircopy.transactions.coordinator import TransactionCoordinator
from faircopy.transactions.reunion import Reunion
from faircopy.transactions.state import TransactionState
from tests.mutants.registry import mutant, replaced


@mutant
def forget_what_was_missed() -> Iterator[Any]:
    """Participants that are led again are not told which commits to apply."""
    with replaced(Reunion, "missed", lambda self: []):
        yield


@mutant
def tell_what_was_missed_in_any_order() -> Iterator[Any]:
    """G0: participants that are led again are told of commits in another order than the others were."""

    def newest_first(rows: Sequence[Any]) -> list[Any]:
        return [(rank, action) for _, rank, action in sorted(rows, key=lambda row: -row[1])]

    with replaced(shards, "by_rank", newest_first):
        yield


@mutant
def forget_what_is_half_applied() -> Iterator[Any]:
    """G0: a coordinator has no successor yet, and a participant that is led again does not learn what others
    have applied.
    """
    with replaced(shards.Shards, "_rows_of_half_applied", lambda self, number: []):
        yield


@mutant
def forget_who_is_open() -> Iterator[Any]:
    """Participants that are led again are not told which transactions are open."""
    real = Reunion._tell_of

    def tell_of(self: Reunion, transaction: Any) -> None:
        if transaction.state is not TransactionState.ONGOING:
            real(self, transaction)

    with replaced(Reunion, "_tell_of", tell_of):
        yield


@mutant
def discard_what_others_may_know() -> Iterator[Any]:
    """Drafts that no coordinator knows are discarded, although some coordinators are missing."""
    with replaced(shards.Shards, "are_all_led", property(lambda self: True)):
        yield


@mutant
def write_after_another_leads() -> Iterator[Any]:
    """A deposed coordinator goes on with what it has begun."""
    with replaced(TransactionCoordinator, "depose", lambda self: None):
        yield
