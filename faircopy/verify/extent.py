"""How much there is to check, for a progress bar."""

from __future__ import annotations

from pathlib import Path

from faircopy.storage.files import is_directory, list_directory, size_of


def bytes_to_check(directory: Path) -> int:
    """The bytes of all files in a directory, and below."""
    return sum(bytes_to_check(child) if is_directory(child) else size_of(child) for child in list_directory(directory))
