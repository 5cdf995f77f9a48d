"""All transactions that a partition knows, even if it is only how they ended."""

from __future__ import annotations

from faircopy.copier.fold import Branch, PartitionState
from faircopy.journal.entry import TransactionId


def known_transactions(state: PartitionState) -> dict[TransactionId, Branch]:
    """The transactions in a partition, the undecided ones first."""
    decided = [each for _, producer in state.producers.items() for each in producer.outcomes]
    found = {each: state.branch(each) for each in [*state.undecided, *decided]}
    return {each: branch for each, branch in found.items() if branch is not None}
