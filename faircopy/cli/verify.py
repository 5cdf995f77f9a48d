"""`faircopy verify`: check a data directory that no broker uses."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from faircopy.cli.columns import size
from faircopy.cli.output import json_option, note, show

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from faircopy.verify.findings import Finding

DATA_DIRECTORY = "./faircopy-data"


@click.command()
@click.argument(
    "directory", type=click.Path(exists=True, file_okay=False, path_type=Path), default=DATA_DIRECTORY
)
@json_option
def verify(directory: Path, as_json: bool) -> None:
    """Check a data directory, DIRECTORY [default: ./faircopy-data], that no broker uses. Nothing is changed.

    Checks every checksum; that each log has contiguous offsets, and the content that its journal says; that
    transactions have all of their drafts, and follow their rules; that plain tables hold the rows of the
    logs. Each finding names the file, and the byte where the damage begins.

    The end of a journal may be torn, which is not damage: the next start cuts it.

    \b
    Exit codes: 0 all is as it should be; 1 something is not, or the check could not be made.
    Examples:
      faircopy verify /var/lib/faircopy
      faircopy verify --json | jq -r '.[].file'
    """
    from faircopy.storage.data_directory import hold_unchanged
    from faircopy.verify.directory import DirectoryCheck
    from faircopy.verify.extent import bytes_to_check

    with hold_unchanged(directory):
        total = bytes_to_check(directory)
        with progress(total, is_shown=not as_json and sys.stderr.isatty()) as bar:
            check = DirectoryCheck(directory, bar.advance)
            findings = list(check.run(bar.begin))
    report(findings, directory, total, as_json)
    sys.exit(1 if findings else 0)


def report(findings: list[Finding], directory: Path, total: int, as_json: bool) -> None:
    """Print the findings."""
    rows = [{"file": str(each.path), "byte": each.byte, "what": each.what} for each in findings]
    if not as_json:
        root = str(directory.absolute())
        rows = [row | {"file": str(row["file"]).removeprefix(root + "/")} for row in rows]
    checked = f"{directory}: {size(total)} checked"
    show(rows, as_json, empty=f"{checked}, all as it should be", folds=False)
    if findings and not as_json:
        note(f"{checked}, 1 finding" if len(findings) == 1 else f"{checked}, {len(findings)} findings")


class Bar:
    """The interface of a progress bar; this one shows nothing."""

    def begin(self, name: str) -> None:
        """The next step begins."""

    def advance(self, count: int) -> None:
        """`count` more bytes are checked."""


class ShownBar(Bar):
    """A progress bar over bytes."""

    def __init__(self, shown: Progress, task: TaskID) -> None:
        self._shown = shown
        self._task = task

    def begin(self, name: str) -> None:
        self._shown.update(self._task, description=name)

    def advance(self, count: int) -> None:
        self._shown.advance(self._task, count)


@contextmanager
def progress(total: int, *, is_shown: bool) -> Iterator[Bar]:
    """A progress bar on stderr, or none."""
    if not is_shown:
        yield Bar()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        yield ShownBar(shown, shown.add_task("", total=total))
