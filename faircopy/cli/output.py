"""What commands print: tables for people, lines with tabs or JSON for programs; and the options for it.

A table goes to a terminal in columns, and to a pipe or a file as lines with tabs. Nothing else goes there then:
what there is to say beside it goes to standard error.
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
    """A question must be answered first, and standard input is no terminal."""


def broker_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option that says which broker to ask."""
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
    """Both options, for commands that ask a broker and print what it says."""
    return functools.reduce(lambda made, option: option(made), (json_option, broker_option), command)


def yes_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option that answers the question before something is lost."""
    return click.option("-y", "--yes", is_flag=True, help="Do not ask. With --json nothing is asked either.")(command)


def confirm(question: str) -> None:
    """Ask on the terminal. Raises NobodyToAsk, and click.Abort if the answer is no."""
    if not sys.stdin.isatty():
        raise NobodyToAsk(
            f"{printable(question)} Nobody can be asked, since standard input is no terminal: answer with --yes"
        )
    click.confirm(printable(question), abort=True, err=True)


def show(rows: Sequence[Row], as_json: bool, *, empty: str, folds: bool = True) -> None:
    """Print rows of one shape: as a table, lines with tabs, or a JSON array.

    With `folds`, lines of a table that is not too long fit the terminal.
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
    """Say something beside a table."""
    if sentence:
        click.echo(printable(sentence), err=not sys.stdout.isatty())
