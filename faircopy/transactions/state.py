"""Where a transaction is in its life, and what may follow what. Pure."""

from __future__ import annotations

from enum import StrEnum

from faircopy.errors import InvariantViolation
from faircopy.journal.entry import Kind


class TransactionState(StrEnum):
    """Where a transaction is in its life; values as Kafka's tools show them."""

    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMMITTED = "CompleteCommit"
    ABORTED = "CompleteAbort"


COMMIT_STATES = (TransactionState.PREPARE_COMMIT, TransactionState.COMMITTED)
ABORT_STATES = (TransactionState.PREPARE_ABORT, TransactionState.ABORTED)

# What may follow what. PREPARE_COMMIT turns into PREPARE_ABORT only in recovery, if a participant lost its
# drafts before anything was acked (docs/ARCHITECTURE.md, Transactions). A fence also aborts what is open, in
# one entry: a crash between two would leave a producer whose transaction is aborted, and which could commit
# the rest of it.
TRANSITIONS: dict[tuple[TransactionState | None, Kind], TransactionState] = {
    (None, Kind.BEGIN): TransactionState.ONGOING,
    (TransactionState.ONGOING, Kind.ADD): TransactionState.ONGOING,
    (TransactionState.ONGOING, Kind.PREPARE_COMMIT): TransactionState.PREPARE_COMMIT,
    (TransactionState.ONGOING, Kind.PREPARE_ABORT): TransactionState.PREPARE_ABORT,
    (TransactionState.ONGOING, Kind.FENCE): TransactionState.PREPARE_ABORT,
    (TransactionState.PREPARE_COMMIT, Kind.PREPARE_ABORT): TransactionState.PREPARE_ABORT,
    (TransactionState.PREPARE_COMMIT, Kind.COMMITTED): TransactionState.COMMITTED,
    (TransactionState.PREPARE_ABORT, Kind.ABORTED): TransactionState.ABORTED,
}


def state_after(state: TransactionState | None, kind: Kind) -> TransactionState:
    """The state that an entry leads to; `state` is None if there was no transaction yet."""
    following = TRANSITIONS.get((state, kind))
    if following is None:
        raise InvariantViolation(f"no transition from {state} by {kind.name}")
    return following
