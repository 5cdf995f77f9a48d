"""Mutants that give up too much, in files or in checkpoints, or believe a disk that has failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from faircopy.copier import checkpoint, fold
from faircopy.datalog import log as data_log
from faircopy.partition import checkpointing
from faircopy.storage.data_directory import DataDirectory
from tests.mutants.registry import mutant, replaced


@mutant
def reclaim_too_much() -> Iterator[Any]:
    """I7: segments with drafts of open transactions are deleted."""
    with replaced(fold.PartitionState, "first_needed_position", property(lambda self: self.position)):
        yield


@mutant
def trim_before_the_checkpoint() -> Iterator[Any]:
    """I6: the segment in which the last checkpoint ends is deleted."""
    real = data_log.DataLog.take_gone
    with replaced(data_log.DataLog, "take_gone", lambda self, checkpointed: real(self, 1 << 62)):
        yield


@mutant
def believe_the_page_cache() -> Iterator[Any]:
    """I10: after a failed fsync, the next start believes that what it reads is on disk."""
    with replaced(DataDirectory, "is_unclean", False):
        yield


@mutant
def forget_sequences_in_checkpoints() -> Iterator[Any]:
    """I6: a checkpoint does not hold the producers' sequence numbers."""
    real = checkpoint.changes_of

    def changes_of(identity: bytes, state: Any, changed: Any) -> Any:
        return real(identity, state, changed._replace(producers=set()))

    with replaced(checkpointing, "changes_of", changes_of):
        yield


@mutant
def forget_open_transactions_in_checkpoints() -> Iterator[Any]:
    """I6: a checkpoint does not hold the heads of open transactions."""
    real = checkpoint.changes_of

    def changes_of(identity: bytes, state: Any, changed: Any) -> Any:
        return real(identity, state, changed._replace(transactions=set()))

    with replaced(checkpointing, "changes_of", changes_of):
        yield
