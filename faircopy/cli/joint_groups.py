"""`faircopy txn groups` and `forget-group`: what is committed under the names of joint groups."""

from __future__ import annotations

import json

import click

from faircopy.api.forget_transaction_group import SCHEMA as FORGET_TRANSACTION_GROUP
from faircopy.api.inspect import SCHEMA as INSPECT
from faircopy.cli.output import asks_broker, confirm, say, show, yes_option
from faircopy.client.connection import BrokerConnection, ensure_ok


@click.command()
@asks_broker
def groups(broker: str, as_json: bool) -> None:
    """Show the groups of joint transactions: who writes, and the last key that is committed.

    Spark queries that write with format("faircopy") have one group each, named by their query id; a key is a
    batch id.
    """
    with BrokerConnection(broker) as connection:
        answer = connection.ask(INSPECT, 0, {"subject": "joint_groups"})
        ensure_ok(answer.error_code, None, "listing joint groups")
    show(json.loads(answer.document), as_json, empty="there are no joint groups")


@click.command(name="forget-group")
@click.argument("group")
@yes_option
@asks_broker
def forget_group(group: str, yes: bool, broker: str, as_json: bool) -> None:
    """Forget a group of joint transactions, and which of its keys are committed.

    Then its name begins anew: what has been written once under a key may be written again. Do this when a
    query or a job is gone for good.
    """
    if not yes and not as_json:
        confirm(f"forget {group}, so that its keys may be committed again?")
    with BrokerConnection(broker) as connection:
        answer = connection.ask(FORGET_TRANSACTION_GROUP, 0, {"group": group})
        ensure_ok(answer.error_code, answer.error_message, f"forgetting {group!r}")
    say({"group": group}, as_json, f"{group} is forgotten")
