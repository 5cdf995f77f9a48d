"""`faircopy tables`: show plain Parquet tables and their progress, and repair one that was moved."""

from __future__ import annotations

import json
from pathlib import Path

import click

from faircopy.api.inspect import SCHEMA as INSPECT
from faircopy.cli.output import asks_broker, json_option, say, show
from faircopy.client.connection import BrokerConnection, ensure_ok


@click.group()
def tables() -> None:
    """Show plain Parquet tables, and repair one that was moved."""


@tables.command(name="list")
@asks_broker
def list_tables(broker: str, as_json: bool) -> None:
    """Show all plain tables: their topics, what is published, and what is waiting."""
    with BrokerConnection(broker) as connection:
        answer = connection.ask(INSPECT, 0, {"subject": "tables"})
    ensure_ok(answer.error_code, answer.document, "listing plain tables")
    show(json.loads(answer.document), as_json, empty="no plain tables yet: each topic gets one")


@tables.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def files(directory: Path, as_json: bool) -> None:
    """Print the Parquet files that make up the table in DIRECTORY now, for readers other than Spark.

    \b
    Example:
      files=$(faircopy tables files faircopy-data/plain/orders --json)
      duckdb -c "select count(*) from read_parquet($files)"
    """
    from faircopy.publish.files import Files
    from faircopy.publish.live_files import live_files

    paths = [str(path) for path in live_files(Files(), directory.absolute())]
    click.echo(json.dumps(paths) if as_json else "\n".join(paths))


@tables.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def relocate(directory: Path, as_json: bool) -> None:
    """Make a table readable by Spark after DIRECTORY was moved.

    Spark's log of a table holds absolute paths. Stop the broker, move its data directory, run this for each
    table in its plain/ directory, and start the broker again. Streams that had read everything before the
    move continue without reading anything twice.

    \b
    Example: faircopy tables relocate /srv/faircopy-data/plain/orders
    """
    from faircopy.publish.arrow import ensure_arrow

    ensure_arrow("checking the files of a plain table")
    from faircopy.publish.files import Files
    from faircopy.publish.relocate import relocate as rewrite

    changed = rewrite(Files(), directory.absolute())
    outcome = {"directory": str(directory.absolute()), "changed_entries": changed}
    say(outcome, as_json, f"{changed} entries of the table's log name {directory.absolute()} now")
