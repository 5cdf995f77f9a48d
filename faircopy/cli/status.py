"""`faircopy status`: the state of a broker."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from faircopy.api.inspect import SCHEMA as INSPECT
from faircopy.cli.columns import shape_of
from faircopy.cli.output import asks_broker, say, show
from faircopy.client.connection import BrokerConnection, ensure_ok


@click.command()
@asks_broker
def status(broker: str, as_json: bool) -> None:
    """Show the state of a broker: version, uptime, memory, CPU, connections, partitions, transactions,
    stalls.

    A stall is a moment in which the broker's event loop was blocked, so that all clients waited: loop_stalls
    counts those of more than 5 ms, and loop_stall_worst_ms is the longest since the start. Stopped partitions
    are named; the broker's log says why they stopped. kept_topics counts those with cleanup.policy=compact,
    which keep every message, and kept_bytes is the size of their logs.

    catalogue_position is where the catalogue's journal ends, which holds topics and changed settings.
    catalogue_journal_bytes is what it keeps, and catalogue_to_replay_bytes what has come since its last
    checkpoint: if the broker is killed, the next start reads that again.

    \b
    Examples:
      faircopy status
      faircopy status --json | jq .loop_stall_worst_ms
      faircopy status | grep stopped
    """
    with BrokerConnection(broker) as connection:
        answer = connection.ask(INSPECT, 0, {"subject": "broker"})
    ensure_ok(answer.error_code, None, "asking for the broker's status")
    about: dict[str, Any] = json.loads(answer.document)
    if as_json:
        say(about, True, "")
        return
    show([row_of(name, value) for name, value in about.items()], False, empty="")


def row_of(name: str, value: Any) -> dict[str, Any]:
    """One line: for people with its unit, for programs as it is."""
    if not sys.stdout.isatty():
        return {"what": name, "value": value}
    heading, shape = shape_of(name)
    return {"what": heading, "value": shape(value)}
