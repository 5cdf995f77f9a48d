"""`faircopy demo`: runs the demo, which is beside the package in a checkout, and no part of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from faircopy.errors import FaircopyError

CHECKOUT = Path(__file__).parents[2]


class NoCheckout(FaircopyError):
    """This faircopy is installed, and the demo is not."""


@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def demo(arguments: tuple[str, ...]) -> None:
    """Stream 336,776 real flights through transactions, crash some producers, and check every claim.

    The demo itself has the options, the help, and another demo of Spark.
    """
    if not all((CHECKOUT / each).exists() for each in ("pyproject.toml", "demo/__main__.py")):
        raise NoCheckout(
            "the demo is in the source, and not in the installed package: `git clone` the repository, and "
            "run `make demo` there"
        )
    path = os.pathsep.join([str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])])
    # In place of this process, so that signals reach it. With -P, it is not taken from another directory.
    command = [sys.executable, "-P", "-m", "demo", *arguments]
    os.execve(sys.executable, command, os.environ | {"PYTHONPATH": path})
