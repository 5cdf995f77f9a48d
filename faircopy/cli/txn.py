"""`faircopy txn`: show transactions, and unstick one."""

from __future__ import annotations

import json
from typing import Any

import click

from faircopy.api.describe_transactions import SCHEMA as DESCRIBE_TRANSACTIONS
from faircopy.api.init_producer_id import SCHEMA as INIT_PRODUCER_ID
from faircopy.api.inspect import SCHEMA as INSPECT
from faircopy.api.list_transactions import SCHEMA as LIST_TRANSACTIONS
from faircopy.cli.columns import duration
from faircopy.cli.joint_groups import forget_group, groups
from faircopy.cli.outcome import outcome
from faircopy.cli.output import asks_broker, confirm, note, say, show, yes_option
from faircopy.client.connection import BrokerConnection, ensure_ok
from faircopy.wire.error_codes import ErrorCode

ABORT_TIMEOUT_MS = 60_000
IS_MEMBER = (
    "it belongs to a joint transaction (faircopy txn groups), which ends as a whole: by whoever writes, by "
    "the next run of its group, or by its timeout"
)


@click.group()
def txn() -> None:
    """Show transactions, and unstick one.

    An open transaction delays nobody: no reader, no other producer. It costs journal space until its timeout,
    when the broker aborts it. `faircopy txn abort` does so at once.
    """


txn.add_command(groups)
txn.add_command(forget_group)
txn.add_command(outcome)


def running(connection: BrokerConnection) -> list[dict[str, Any]]:
    """All transactions that are not over."""
    answer = connection.ask(INSPECT, 0, {"subject": "transactions"})
    ensure_ok(answer.error_code, None, "listing transactions")
    found: list[dict[str, Any]] = json.loads(answer.document)
    return found


@txn.command(name="list")
@click.option(
    "-a", "--all", "show_all", is_flag=True, help="Also transactional ids without a running transaction."
)
@asks_broker
def list_transactions(show_all: bool, broker: str, as_json: bool) -> None:
    """Show running transactions: state, age, group, partitions, bytes journaled."""
    with BrokerConnection(broker) as connection:
        rows = running(connection)
        idle = idle_ids(connection, {row["transactional_id"] for row in rows}) if show_all else []
    if as_json:
        show([*rows, *idle], True, empty="")
        return
    shown = [row_of(row) for row in [*rows, *(dict.fromkeys(COLUMNS) | row for row in idle)]]
    show(shown, False, empty="no transaction is running")


COLUMNS = ("transactional_id", "state", "age_ms", "group", "partitions", "messages", "journaled_bytes", "id")


def row_of(row: dict[str, Any]) -> dict[str, Any]:
    """A transaction as a row of the table, with the number of its partitions."""
    partitions = row["partitions"]
    return {name: row[name] for name in COLUMNS} | {
        "partitions": None if partitions is None else len(partitions)
    }


def idle_ids(connection: BrokerConnection, busy: set[str]) -> list[dict[str, Any]]:
    """Transactional ids without a running transaction."""
    answer = connection.ask(LIST_TRANSACTIONS, 0, {"state_filters": [], "producer_id_filters": []})
    return [
        {"transactional_id": each.transactional_id, "state": each.transaction_state}
        for each in answer.transaction_states
        if each.transactional_id not in busy
    ]


@txn.command()
@click.argument("transactional_id")
@asks_broker
def describe(transactional_id: str, broker: str, as_json: bool) -> None:
    """Show one transactional id, and how to unstick it."""
    with BrokerConnection(broker) as connection:
        answer = connection.ask(DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": [transactional_id]})
        state = answer.transaction_states[0]
        ensure_ok(state.error_code, None, f"transactional id {transactional_id!r}")
        rows = [row for row in running(connection) if row["transactional_id"] == transactional_id]
    described = {
        "transactional_id": transactional_id,
        "state": state.transaction_state,
        "producer_id": state.producer_id,
        "producer_epoch": state.producer_epoch,
        "timeout_ms": state.transaction_timeout_ms,
        "transactions": rows,
    }
    if as_json:
        say(described, True, "")
        return
    note(
        f"{transactional_id}: {state.transaction_state}, producer {state.producer_id} epoch "
        f"{state.producer_epoch}, timeout {duration(state.transaction_timeout_ms)}"
    )
    for row in rows:
        show([row_of(row)], False, empty="")
        note(f"partitions: {', '.join(row['partitions'])}")
        note(advice(row))


def advice(row: dict[str, Any]) -> str:
    """What can be done about a transaction."""
    name = row["transactional_id"]
    if row["state"] == "Ongoing":
        left_ms = row["timeout_ms"] - row["age_ms"]
        when = f"in {duration(left_ms)}" if left_ms > 0 else "any moment now"
        return f"It is aborted {when} by its timeout, or now with: faircopy txn abort {name}"
    if row["state"] == "PrepareCommit":
        return (
            "It is committed, and being copied. If that does not end, a partition it wrote to is stopped: "
            "see the broker's log."
        )
    return "It is being aborted."


@txn.command()
@click.argument("transactional_id")
@yes_option
@asks_broker
def abort(transactional_id: str, yes: bool, broker: str, as_json: bool) -> None:
    """Abort an open transaction, and fence its producer.

    The producer gets an error with its next request, as if another instance had taken its place.
    """
    with BrokerConnection(broker) as connection:
        answer = connection.ask(DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": [transactional_id]})
        state = answer.transaction_states[0]
        ensure_ok(state.error_code, None, f"transactional id {transactional_id!r}")
        if not yes and not as_json:
            confirm(f"abort the open transaction of {transactional_id}, and fence its producer?")
        timeout_ms = state.transaction_timeout_ms or ABORT_TIMEOUT_MS
        fenced = connection.ask(
            INIT_PRODUCER_ID,
            3,
            {"transactional_id": transactional_id, "transaction_timeout_ms": timeout_ms},
        )
        reason = IS_MEMBER if fenced.error_code == ErrorCode.INVALID_REQUEST else None
        ensure_ok(fenced.error_code, reason, f"aborting {transactional_id!r}")
    outcome = {
        "transactional_id": transactional_id,
        "was": state.transaction_state,
        "epoch": fenced.producer_epoch,
    }
    was_open = state.transaction_state == "Ongoing"
    done = (
        "aborted its open transaction and fenced its producer"
        if was_open
        else "had none open; fenced its producer"
    )
    say(outcome, as_json, f"{transactional_id}: {done} (epoch {fenced.producer_epoch})")
