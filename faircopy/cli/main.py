"""The command line's root: commands are loaded when they are used, so that each starts quickly.

Exit codes: 0 done; 1 failed, with a line that says why; 2 wrong usage; 70 and 74 the broker stopped because
of a bug, or because its disk failed (sysexits' EX_SOFTWARE and EX_IOERR); 130 Ctrl-C, or a question was
answered with no; 141 the reader of the output closed it, as `head` does (128 plus SIGPIPE's number).
cli/signals.py has the exit codes for signals to a broker.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import Any

import click

from faircopy import __version__
from faircopy.cli.columns import printable
from faircopy.errors import FaircopyError

EXIT_ABORTED = 130
EXIT_NO_READER = 141
NOT_ON_WINDOWS = (
    "faircopy: it does not run on Windows: use it in WSL (the Windows Subsystem for Linux) or in a container"
)

COMMANDS = {
    "start": "faircopy.cli.start:start",
    "topics": "faircopy.cli.topics:topics",
    "groups": "faircopy.cli.groups:groups",
    "produce": "faircopy.cli.produce:produce",
    "consume": "faircopy.cli.consume:consume",
    "txn": "faircopy.cli.txn:txn",
    "tables": "faircopy.cli.tables:tables",
    "status": "faircopy.cli.status:status",
    "replicas": "faircopy.cli.replicas:replicas",
    "settings": "faircopy.cli.settings:settings",
    "verify": "faircopy.cli.verify:verify",
    "backup": "faircopy.cli.backup:backup",
    "restore": "faircopy.cli.restore:restore",
    "journal": "faircopy.cli.journal:journal",
    "log": "faircopy.cli.log:log",
    "demo": "faircopy.cli.demo:demo",
}


class NoReader(Exception):
    """The reader of a command's output closed the pipe. (click turns BrokenPipeError into exit code 1.)"""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used."""

    def invoke(self, context: click.Context) -> Any:
        try:
            result = super().invoke(context)
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise NoReader from error
        return result

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name].partition(":")
        # What modules define stays: collections would look at it again and again.
        gc.disable()
        try:
            command: click.Command = getattr(import_module(module), attribute)
        finally:
            gc.enable()
        return command


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="faircopy")
def cli() -> None:
    """A transactional log broker, Kafka-compatible on the wire.

    What has not committed is never in the log: every consumer, an unmodified Spark among them, reads
    committed data only.

    \b
    Exit codes: 0 done; 1 failed, one line says why; 2 wrong usage; 130 stopped by Ctrl-C;
    141 the reader of the output closed it, as head does.
    """


def main() -> None:
    """Run the command line. On Windows that says where to run it, before anything of Unix is imported."""
    if sys.platform == "win32":
        sys.exit(NOT_ON_WINDOWS)
    run(cli)


def run(command: click.Command, name: str | None = None) -> None:
    """Run a command, by the name that its help shows; turn our errors into one line and exit code 1."""
    try:
        command.main(prog_name=name, standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        click.echo("stopped", err=True)
        sys.exit(EXIT_ABORTED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except FaircopyError as error:
        click.echo(f"{click.style('faircopy:', fg='red', bold=True)} {printable(str(error))}", err=True)
        sys.exit(1)
    except NoReader:
        # The data that is still buffered must not cause another failure when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_NO_READER)
