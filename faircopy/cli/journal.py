"""`faircopy journal`: look into journals without a broker."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircopy.cli.columns import printable
from faircopy.cli.output import json_option, show

if TYPE_CHECKING:
    from faircopy.verify.journal_entries import ShownEntry
    from faircopy.verify.journal_files import JournalFiles


@click.group()
def journal() -> None:
    """Look into journals, which hold drafts, decisions and the catalogue, without a broker."""


@journal.command(name="show")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option(
    "-t", "--transaction", metavar="PID.EPOCH.NUMBER", help="Follow one transaction's list, last entry first."
)
@click.option("-k", "--key", help="Show only what writes of the catalogue say of this key.")
@click.option(
    "--from", "start", type=click.IntRange(min=0), metavar="POSITION", help="Start with the entry there."
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Show this many entries.",
)
@json_option
def show_journal(
    path: Path, transaction: str | None, key: str | None, start: int | None, limit: int, as_json: bool
) -> None:
    """Print the entries of a journal. PATH is one segment file or a journal's directory.

    `previous` is the position of the same transaction's previous draft. Nothing is changed, and a broker may
    be running.

    The catalogue's journal holds topics, changed settings and counters. Each of its entries is one write of
    some keys. "(new)" is a key that was not there; "(was 214)" is one that the entry at position 214 wrote.

    \b
    Exit codes: 0 the entries could be read up to where they end; 1 one of them is damaged.
    Examples:
      faircopy journal show faircopy-data/journal/orders.3f2a9c1b/0
      faircopy journal show faircopy-data/journal/_metadata/3/00000000000000000000.journal --limit 20
      faircopy journal show faircopy-data/journal/orders.3f2a9c1b/0 --transaction 7.0.4294967297
      faircopy journal show faircopy-data/journal/_catalogue/0 --key topics/orders
    """
    from faircopy.verify.journal_entries import changes_of, open_to_show, shown_entries

    if transaction is not None and key is not None:
        raise click.UsageError("--transaction and --key exclude each other: give one of them")
    files = open_to_show(path)
    if transaction is not None:
        show_transaction(files, transaction, as_json)
        return
    entries = shown_entries(files, start)
    found = list(islice(entries if key is None else changes_of(entries, key), limit + 1))
    print_entries(found[:limit], as_json)
    if len(found) > limit:
        click.echo(f"more follow: --from {found[limit].entry.position}, or --limit", err=True)
    elif not is_clean_end(files):
        sys.exit(1)


def show_transaction(files: JournalFiles, text: str, as_json: bool) -> None:
    """Print the entries of one transaction along its reverse list. Raises BadParameter."""
    from faircopy.verify.journal_entries import follow, transaction_of

    try:
        transaction = transaction_of(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not like 7.0.4294967297", param_hint="--transaction") from None
    entries, missing = follow(files, transaction)
    print_entries(entries, as_json)
    if missing is not None:
        click.echo(f"the list continues at position {missing}, which is not in {files.directory}", err=True)
    if not is_clean_end(files):
        sys.exit(1)


def is_clean_end(files: JournalFiles) -> bool:
    """Whether the entries end where a journal may end; if not, print why."""
    from faircopy.verify.journal_entries import unclean_end

    complaint = unclean_end(files)
    if complaint:
        click.echo(printable(complaint), err=True)
    return not complaint


def print_entries(entries: Iterable[ShownEntry], as_json: bool) -> None:
    """Print a row for each entry, as a table or as lines of JSON."""
    rows = [row_of(each) if as_json else readable(each) for each in entries]
    show(rows, as_json, empty="no entries", folds=False)


def readable(shown: ShownEntry) -> dict[str, Any]:
    """An entry as people read it, without the file, which they have named themselves."""
    from faircopy.catalogue.change import sentence_of_change

    says = sentence_of_change(shown.says) if shown.is_change else pairs(shown.says)
    return {name: value for name, value in row_of(shown).items() if name != "file"} | {"says": says}


def pairs(says: dict[str, Any]) -> str:
    """The meaning of a payload as text."""
    parts = (
        f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in says.items()
    )
    return " ".join(parts)


def row_of(shown: ShownEntry) -> dict[str, Any]:
    """An entry as a row of the table."""
    entry = shown.entry
    return {
        "position": entry.position,
        "file": str(shown.path),
        "byte": shown.byte,
        "kind": shown.kind,
        "transaction": str(shown.transaction) if shown.transaction else None,
        "previous": entry.previous if entry.previous >= 0 else None,
        "messages": entry.records if not shown.is_change else None,
        "bytes": entry.length,
        "says": shown.says,
    }
