"""The findings of a check of a data directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

Advance = Callable[[int], None]
"""Is told how many more bytes are checked."""


class Finding(NamedTuple):
    """A fault in a file, at `byte`; None if it is not in one place."""

    path: Path
    byte: int | None
    what: str

    def __str__(self) -> str:
        return f"{self.path}{f' at byte {self.byte:,}' if self.byte is not None else ''}: {self.what}"
