"""The output of commands: tables for people, tab-separated lines or JSON for programs; and the options for
it.

A table is printed in columns on a terminal, and as tab-separated lines to a pipe or a file. Nothing else is
printed there: further remarks go to standard error.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from faircopy.cli.columns import FOLDED_ROWS_MAX, Row, columns, folded, printable, tab_separated
from faircopy.errors import FaircopyError

BROKER = "127.0.0.1:9092"


class NobodyToAsk(FaircopyError):
    """A question must be answered first, but standard input is not a terminal."""


def broker_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option that names the broker to ask."""
    return click.option(
        "-b",
        "--broker",
        default=BROKER,
        show_default=True,
        envvar="FAIRCOPY_BROKER",
        metavar="HOST:PORT",
        help="The broker to ask.",
    )(command)


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option to print JSON."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def asks_broker(command: Callable[..., Any]) -> Callable[..., Any]:
    """Both options, for commands that ask a broker and print its answer."""
    return functools.reduce(lambda made, option: option(made), (json_option, broker_option), command)


def yes_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option that skips the question before data is deleted."""
    return click.option("-y", "--yes", is_flag=True, help="Do not ask. With --json nothing is asked either.")(
        command
    )


def confirm(question: str) -> None:
    """Ask on the terminal. Raises NobodyToAsk, and click.Abort if the answer is no."""
    if not sys.stdin.isatty():
        raise NobodyToAsk(
            f"{printable(question)} Nobody can be asked, since standard input is not a terminal: "
            f"answer with --yes"
        )
    click.confirm(printable(question), abort=True, err=True)


def show(rows: Sequence[Row], as_json: bool, *, empty: str, folds: bool = True) -> None:
    """Print rows with the same columns: as a table, as tab-separated lines, or as a JSON array.

    With `folds`, a table that is not too long is folded to the terminal's width.
    """
    if as_json:
        click.echo(json.dumps(list(rows), indent=2 if sys.stdout.isatty() else None))
    elif not rows:
        note(empty)
    elif not sys.stdout.isatty():
        click.echo(tab_separated(rows))
    elif folds and len(rows) <= FOLDED_ROWS_MAX:
        from rich.console import Console

        Console().print(folded(rows))
    else:
        heading, _, lines = columns(rows).partition("\n")
        click.secho(heading, bold=True)
        click.echo(lines)


def say(what: Row, as_json: bool, sentence: str) -> None:
    """Print the outcome of one action: a sentence, or a JSON object."""
    click.echo(json.dumps(what) if as_json else printable(sentence))


def note(sentence: str) -> None:
    """Print a remark on a table."""
    if sentence:
        click.echo(printable(sentence), err=not sys.stdout.isatty())
