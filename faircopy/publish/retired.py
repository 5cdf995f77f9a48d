"""Files that are off a table's list, and stay on disk for the grace, as readers may still need them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from faircopy.publish import names, table_state
from faircopy.publish.files import Files, write_durably
from faircopy.publish.log_directory import damaged


class RetiredFiles:
    """When each retired file of the table in `directory` was taken off the list, in memory and on disk."""

    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self._directory = directory
        self._since_ms: dict[str, int] = {}
        self._saved: dict[str, int] | None = None

    @property
    def count(self) -> int:
        """How many files wait for the end of their grace."""
        return len(self._since_ms)

    def load(self) -> None:
        """Read the file on disk. Raises OtherFormatError or TableDamagedError."""
        if names.STATE not in self._files.list_directory(self._directory):
            return
        content = self._files.read(self._directory / names.STATE)
        try:
            self._since_ms = table_state.parse_state(content, str(self._directory))
        except (ValueError, TypeError, KeyError) as error:
            raise damaged(self._directory, f"{names.STATE} is damaged ({error})") from error
        self._saved = dict(self._since_ms)

    def save(self) -> None:
        """Write the file if something changed, or if the table does not have it yet."""
        if self._since_ms == self._saved:
            return
        content = table_state.format_state(self._since_ms)
        write_durably(self._files, self._directory / names.STATE, content)
        self._saved = dict(self._since_ms)

    def add(self, retired: Iterable[str], now_ms: int) -> None:
        """Start the grace of these files now, unless it has started already."""
        self._since_ms = dict.fromkeys(retired, now_ms) | self._since_ms

    def delete_expired(self, now_ms: int, grace_ms: int) -> None:
        """Delete the files whose grace is over at `now_ms`; the next `save` forgets them on disk."""
        for name in [name for name, since_ms in self._since_ms.items() if since_ms + grace_ms <= now_ms]:
            self._files.delete(self._directory / name)
            del self._since_ms[name]
