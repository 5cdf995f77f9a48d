"""`faircopy log`: look into data logs without a broker."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircopy.cli.columns import printable
from faircopy.cli.output import json_option, show

if TYPE_CHECKING:
    from faircopy.verify.log_files import ShownBatch

SHOWN_BYTES = 60


@click.group()
def log() -> None:
    """Look into data logs, which hold committed messages, without a broker."""


@log.command(name="show")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("-r", "--records", is_flag=True, help="Show the messages in the batches.")
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Show this many rows."
)
@json_option
def show_log(path: Path, records: bool, limit: int, as_json: bool) -> None:
    """Print the batches of a data log, or its messages. PATH is a segment file or a partition's directory.

    Every batch is checked. Nothing is changed, and a broker may be running; a batch that it is just writing
    may look damaged.

    \b
    Exit codes: 0 all batches that were read are sound; 1 a batch is damaged or cut short.
    Examples:
      faircopy log show faircopy-data/log/orders.3f2a9c1b/0
      faircopy log show faircopy-data/log/orders.3f2a9c1b/0/00000000000000000000.log --records --limit 10
    """
    from faircopy.verify.log_files import DamagedLogFile

    rows: list[dict[str, Any]] = []
    damage = None
    try:
        for row in islice(rows_of(path, records), limit + 1):
            rows.append(row)
    except DamagedLogFile as error:
        damage = error
    shown = rows[:limit] if as_json else [readable(row, is_one_file=path.is_file()) for row in rows[:limit]]
    show(shown, as_json, empty="no batches", folds=False)
    if len(rows) > limit:
        click.echo("more follow: --limit", err=True)
    elif damage is not None:
        click.echo(printable(str(damage)), err=True)
        sys.exit(1)


def rows_of(path: Path, records: bool) -> Iterator[dict[str, Any]]:
    """A row for each batch, or with `records` for each record, of one segment file or of a directory's."""
    from faircopy.verify.log_files import LogFile, base_offset_of, log_files

    for file in log_files(path) if path.is_dir() else [path]:
        for batch in LogFile(file).batches(base_offset_of(file)):
            if records:
                yield from record_rows(batch)
            else:
                yield batch_row(batch)


def readable(row: dict[str, Any], *, is_one_file: bool) -> dict[str, Any]:
    """A row as people read it."""
    hidden = {"file"} if is_one_file else set()
    return {name: value for name, value in row.items() if name not in hidden}


def batch_row(batch: ShownBatch) -> dict[str, Any]:
    """A batch as a row of the table."""
    header = batch.header
    return {
        "offset": header.base_offset,
        "last": header.last_offset,
        "byte": batch.byte,
        "bytes": header.size_bytes,
        "messages": header.records,
        "time_ms": header.max_timestamp_ms,
        "producer": f"{header.producer_id}.{header.producer_epoch}" if header.producer_id >= 0 else None,
        "sequence": header.base_sequence if header.producer_id >= 0 else None,
        "transactional": header.is_transactional,
        "file": batch.path.name,
    }


def record_rows(batch: ShownBatch) -> Iterator[dict[str, Any]]:
    """The messages of a batch. A message that can't be decoded is a client's fault, and its row says so."""
    from faircopy.wire.compression import RecordsError
    from faircopy.wire.records import decode_records

    try:
        for record in decode_records(bytes(batch.data)):
            yield {
                "offset": record.offset,
                "time_ms": record.timestamp_ms,
                "key": text(record.key),
                "value": text(record.value),
                "headers": [f"{name}={text(value)}" for name, value in record.headers],
            }
    except RecordsError as error:
        yield {
            "offset": batch.header.base_offset,
            "time_ms": batch.header.max_timestamp_ms,
            "key": None,
            "value": f"<{error}>",
            "headers": [],
        }


def text(data: bytes | None) -> str | None:
    """The start of a key or value."""
    if data is None:
        return None
    shown = data[:SHOWN_BYTES].decode("utf-8", "replace")
    return shown if len(data) <= SHOWN_BYTES else f"{shown}… ({len(data):,} bytes)"
