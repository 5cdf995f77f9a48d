"""What a check of a data directory finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

Advance = Callable[[int], None]
"""Is told how many more bytes are checked."""


class Finding(NamedTuple):
    """Something that is not as it should be; `byte` is where in the file, None if it is not in one place."""

    path: Path
    byte: int | None
    what: str

    def __str__(self) -> str:
        return f"{self.path}{f' at byte {self.byte:,}' if self.byte is not None else ''}: {self.what}"
