"""What the benchmark and the tests need from outside, in a cache that outlives a checkout.

Each dependency has a folder, named for it and for a hash of what decides its content, such as a pom. So a new
checkout finds what another has fetched, and no checkout finds what has changed since.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

DIGITS = 16


class Unavailable(Exception):
    """Something that is needed from outside is not available. The message says why in one line."""


class Unreachable(Unavailable):
    """It could not be had this time; another try may help."""


@dataclass(frozen=True)
class Dependency:
    """Something that is fetched or built. `make` puts it into a directory that exists and is empty, and may
    raise Unavailable; `files` and `properties` decide what comes of that.
    """

    name: str
    files: tuple[Path, ...]
    make: Callable[[Path], None]
    properties: tuple[tuple[str, str], ...] = ()

    @property
    def directory(self) -> Path:
        """Where it is, or would be."""
        return cache() / f"{self.name}-{self._digest()}"

    def _digest(self) -> str:
        decisive = [path.read_bytes() for path in self.files]
        decisive += [f"{name}={value}".encode() for name, value in self.properties]
        lengths = [str(len(each)).encode() for each in decisive]
        return hashlib.sha256(b",".join([*lengths, *decisive])).hexdigest()[:DIGITS]

    def find(self) -> Path:
        """Its directory. Raises Unavailable unless somebody has fetched it."""
        if not self.directory.is_dir():
            raise Unavailable(f"{self.name} is not there: run `make fetch`")
        return self.directory

    def fetch(self) -> Path:
        """Its directory, which appears whole or not at all. One process fetches, and the others wait for it.
        Raises Unavailable.
        """
        directory = self.directory
        if not directory.is_dir():
            directory.parent.mkdir(parents=True, exist_ok=True)
            with locked(directory.with_name(f"{directory.name}.lock")):
                if not directory.is_dir():
                    self._make_whole(directory)
        return directory

    def _make_whole(self, directory: Path) -> None:
        unfinished = directory.with_name(f"{directory.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed
        unfinished.mkdir()
        try:
            self.make(unfinished)
            unfinished.rename(directory)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


def cache() -> Path:
    """The directory of all dependencies, as the XDG Base Directory Specification has it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "faircopy"


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock, which the kernel releases if this process is killed."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
