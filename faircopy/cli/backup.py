"""`faircopy backup`: a consistent copy of a running broker."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from faircopy.api.backup import SCHEMA as BACKUP
from faircopy.cli.columns import size
from faircopy.cli.output import asks_broker, say
from faircopy.cli.verify import progress
from faircopy.client.connection import BrokerConnection, ensure_ok
from faircopy.errors import FaircopyError

SNAPSHOT_SECONDS = 600.0


class NotHere(FaircopyError):
    """The broker's files are not on this machine, or this user may not read them."""


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@asks_broker
def backup(directory: Path, broker: str, as_json: bool) -> None:
    """Make a backup in DIR of a broker that runs on this machine. The broker keeps serving. Run it as the
    broker's user.

    Each backup is a directory of its own in DIR, named by its time: all topics, offsets of groups and
    transactions as they were at one moment. Plain tables are not included: they are made again from the logs.
    Files that have not changed since the last backup in DIR take no more space. On the broker's own file
    system most other files take none either, but a copy on another disk is safer. Old backups may be deleted
    at any time.

    The next backup continues an interrupted one.

    \b
    Examples:
      faircopy backup /mnt/backups/faircopy
      faircopy backup /mnt/backups/faircopy --json | jq -r .path
    """
    from faircopy.backup.make import Backup, Wanted

    with snapshot_of(broker) as (snapshot, listed):
        wanted = [Wanted(path, *rest) for path, rest in listed["files"].items()]
        total = sum(each.size for each in wanted)
        made = datetime.now(UTC).strftime("%Y-%m-%dT%H%M%SZ")
        with progress(total, is_shown=not as_json and sys.stderr.isatty()) as bar:
            bar.begin("copying")
            outcome = Backup(snapshot, directory.absolute(), listed["cluster"], bar.advance).run(wanted, made)
    say(
        outcome._asdict() | {"path": str(outcome.path)},
        as_json,
        f"{outcome.path}: {size(total)} in {outcome.files:,} files; {size(outcome.copied_bytes)} copied, "
        f"{size(outcome.linked_bytes)} linked, {size(outcome.kept_bytes)} as in an earlier backup",
    )


@contextlib.contextmanager
def snapshot_of(broker: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A snapshot of a broker's files within the block, and the list of them."""
    from faircopy.hosting.snapshots import FILES, claim
    from faircopy.storage.paths import read_file
    from faircopy.storage.system import mounted

    made = ask(broker, {"step": "begin"})
    snapshot = Path(made["directory"])
    try:
        try:
            lock = claim(snapshot)
        except OSError as error:
            raise NotHere(
                f"the files of the broker on {broker}, in {snapshot}, can't be read: {error.strerror}. Run "
                f"this on the broker's machine, as the broker's user"
            ) from error
        try:
            yield snapshot, json.loads(read_file(snapshot / FILES))
        finally:
            mounted().close(lock)
    finally:
        with contextlib.suppress(FaircopyError):  # the broker removes it later
            ask(broker, {"step": "end", "snapshot": made["snapshot"]})


def ask(broker: str, step: dict[str, str]) -> dict[str, Any]:
    """Let the broker make its snapshot, or remove it."""
    with BrokerConnection(broker, SNAPSHOT_SECONDS) as connection:
        answer = connection.ask(BACKUP, 1, step)
    ensure_ok(answer.error_code, answer.error_message, "making a snapshot of the broker")
    document: dict[str, Any] = json.loads(answer.document)
    return document
