"""What a seed is: an input with its name, valid as its target takes it."""

from __future__ import annotations

import struct
from collections.abc import Iterator

Seeds = Iterator[tuple[str, bytes]]


def sized(content: bytes) -> bytes:
    """As `Choices.some` takes it."""
    return struct.pack(">H", len(content)) + content
