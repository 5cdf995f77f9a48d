"""`faircopy txn outcome`: what became of the last transaction of a transactional id."""

from __future__ import annotations

import sys
from typing import NamedTuple

import click

from faircopy.api.describe_transactions import SCHEMA as DESCRIBE_TRANSACTIONS
from faircopy.cli.output import asks_broker, say
from faircopy.client.connection import BrokerConnection, ensure_ok
from faircopy.wire.error_codes import ErrorCode

EXIT_NOT_KNOWN = 1


class Outcome(NamedTuple):
    """What became of a transaction, in one word and in one sentence."""

    outcome: str
    sentence: str


OF_STATES = {
    "CompleteCommit": Outcome("committed", "committed: all of its last transaction is in the log"),
    "PrepareCommit": Outcome("committed", "committed: readers see all of its last transaction in a moment"),
    "CompleteAbort": Outcome("aborted", "aborted: nothing of its last transaction is in the log"),
    "PrepareAbort": Outcome("aborted", "aborted: nothing of its last transaction will be in the log"),
    "Ongoing": Outcome("open", "open: its transaction is neither committed nor aborted yet"),
}
EMPTY = Outcome("not known", "not known: no transaction of it has reached the broker since it was known")
NEVER_MET = Outcome(
    "not known",
    "not known: the broker never met this transactional id, or has forgotten it since "
    "(transactional.id.expiration.ms)",
)


def outcome_of(error_code: int, state: str) -> Outcome:
    """The outcome that a description of a transactional id tells. Raises RequestFailed."""
    if error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return NEVER_MET
    ensure_ok(error_code, None, "asking for the outcome of a transaction")
    return OF_STATES.get(state, EMPTY)


@click.command()
@click.argument("transactional_id")
@asks_broker
def outcome(transactional_id: str, broker: str, as_json: bool) -> None:
    """Tell whether the last transaction was applied: committed, aborted, open, or not known.

    For a producer whose commit ended without an answer. It is the last transaction that reached the broker:
    one whose first message never arrived is not known, and the one before it is told of. Ask before the
    producer starts again, since that aborts what is open. An id is known until transactional.id.expiration.ms
    after its last use.

    \b
    Example:
      faircopy txn outcome loader && echo "the broker knows it"

    Exit codes: 0 it is known; 1 it is not known, or the broker could not be asked.
    """
    with BrokerConnection(broker) as connection:
        answer = connection.ask(DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": [transactional_id]})
    state = answer.transaction_states[0]
    found = outcome_of(state.error_code, state.transaction_state)
    told = {"transactional_id": transactional_id, "outcome": found.outcome, "state": state.transaction_state}
    say(told, as_json, f"{transactional_id}: {found.sentence}")
    if found.outcome == "not known":
        sys.exit(EXIT_NOT_KNOWN)
