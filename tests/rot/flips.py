"""Changing single bytes of files, and which of them to change."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class Flip(NamedTuple):
    """One byte of a file, and the bits of it that change."""

    byte: int
    bits: int


@contextmanager
def flipped(path: Path, flip: Flip) -> Iterator[None]:
    """The file with the byte changed, and as it was before afterwards."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        before = os.pread(descriptor, 1, flip.byte)
        os.pwrite(descriptor, bytes([before[0] ^ flip.bits]), flip.byte)
        yield
        os.pwrite(descriptor, before, flip.byte)
    finally:
        os.close(descriptor)


def flip_for_good(path: Path, flip: Flip) -> bytes:
    """Change the byte; return the whole file as it is then."""
    data = bytearray(path.read_bytes())
    data[flip.byte] ^= flip.bits
    path.write_bytes(data)
    return bytes(data)


def flips_of(
    chance: random.Random, every: Iterable[int], some_of: Iterable[int] = (), count: int = 0
) -> list[Flip]:
    """A flip of each byte in `every`, and of `count` others in `some_of`, with random bits."""
    others = list(some_of)
    chosen = {*every, *chance.sample(others, min(count, len(others)))}
    return [Flip(byte, chance.randrange(1, 256)) for byte in sorted(chosen)]
