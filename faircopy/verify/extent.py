"""How much there is to check, for a progress bar."""

from __future__ import annotations

from pathlib import Path

from faircopy.hosting.snapshots import DIRECTORY as SNAPSHOT
from faircopy.storage.paths import is_directory, list_directory, size_of
from faircopy.storage.reserve import FILE as RESERVE

NOT_CHECKED = {RESERVE, SNAPSHOT}  # they hold no data of their own


def bytes_to_check(directory: Path) -> int:
    """The bytes to check in a data directory."""
    checked = [child for child in list_directory(directory) if child.name not in NOT_CHECKED]
    return sum(bytes_in(child) if is_directory(child) else size_of(child) for child in checked)


def bytes_in(directory: Path) -> int:
    """The bytes of all files in a directory, and below."""
    return sum(
        bytes_in(child) if is_directory(child) else size_of(child) for child in list_directory(directory)
    )
