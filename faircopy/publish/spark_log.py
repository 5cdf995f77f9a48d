"""The log of a plain table, `_spark_metadata`: the format of Spark's own file sink, which every Spark reads.

It is a directory of entry files whose ids have no gaps. Entry N is the file `N`, which lists the data files
that it adds. If (N + 1) is a multiple of the interval, it is the file `N.compact`, which lists all live
files. A reader takes the newest compact file and the entries after it.

An entry file is a line `v1`, then for each data file a line of JSON; all seven keys are required:

    {"path": "file:///...", "size": bytes, "isDir": false, "modificationTime": ms, "blockReplication": 1,
     "blockSize": bytes, "action": "add"}

Paths are absolute, and percent-encoded as in a URI. Entries that come before the newest compact file are not
read, so their ids may have gaps: upkeep writes the next compact file at once.

Batch reads and streams take different files from the same list. A batch read takes those whose listed size is
not 0. A stream takes those that are not too old (`maxFileAge`), whatever their listed size is, and asks the
file system for the real one. So there are three kinds of lines:

    size, time           an ordinary file, for both
    0, time              a file that was merged into another: it is *covered*, and for streams only
    size, NEVER_NEW_MS   the merged file, for batch reads only; it comes before the files that it covers

Hence what a stream reads never changes, however far it lags. NEVER_NEW_MS is so early that no `maxFileAge`
and no other option makes a stream take the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from faircopy.errors import FaircopyError

COMPACT_INTERVAL = 16
COMPACTS_KEPT = 3
FIRST_COMPACTS = (
    COMPACT_INTERVAL - 1,
    2 * COMPACT_INTERVAL - 1,
)  # empty: two of them tell Spark the interval
FIRST_ENTRY = 2 * COMPACT_INTERVAL

NEVER_NEW_MS = -(2**63)

_VERSION = "v1"
_COMPACT = ".compact"
_BLOCK_BYTES = 128 * 1024 * 1024
_END = f',"blockReplication":1,"blockSize":{_BLOCK_BYTES},"action":"add"}}'
_INTEGER = "(0|-?[1-9][0-9]{0,18})"
_COMMON = re.compile(
    r'\{"path":"file://(/[^"\\?#]*)/([A-Za-z0-9_][A-Za-z0-9_.-]*)",'
    + f'"size":{_INTEGER},"isDir":false,"modificationTime":{_INTEGER}{re.escape(_END)}'
).fullmatch
_UNRESERVED = re.compile(r"[A-Za-z0-9_.-]+").fullmatch  # what `quote` leaves as it is


class LogFormatError(FaircopyError):
    """An entry of a table's `_spark_metadata` is not what Spark or faircopy writes."""


class DataFile(NamedTuple):
    """A live data file: its name in the table's directory, its exact size in bytes (0: it is covered by a
    merged file), its modification time.
    """

    name: str
    size: int
    modified_ms: int

    @property
    def is_covered(self) -> bool:
        """Whether a merged file has its rows for batch reads."""
        return self.size == 0


def is_compact(entry: int) -> bool:
    """Whether the entry with this id lists all live files, not only the ones that it adds."""
    return (entry + 1) % COMPACT_INTERVAL == 0


def next_compact(entry: int) -> int:
    """The first compact entry from this one on."""
    return entry + -(entry + 1) % COMPACT_INTERVAL


def entry_name(entry: int) -> str:
    """The name of an entry's file."""
    return f"{entry}{_COMPACT}" if is_compact(entry) else str(entry)


def entry_of_name(name: str) -> int | None:
    """The id of the entry in a file of the log directory; None for temporary files and checksums."""
    digits = name.removesuffix(_COMPACT)
    entry = int(digits) if digits.isascii() and digits.isdigit() else None
    return entry if entry is not None and entry_name(entry) == name else None


def format_entry(directory: PurePosixPath, files: Iterable[DataFile]) -> bytes:
    """The bytes of an entry file that lists `files` of the table in `directory` (absolute)."""
    start = _start(directory)
    return "\n".join([_VERSION, *(_line(start, file) for file in files)]).encode()


def _start(directory: PurePosixPath) -> str:
    """The start of the lines of files in a directory. A quoted path has nothing that JSON would escape."""
    return f'{{"path":"file://{quote(str(directory))}/'


def _line(start: str, file: DataFile) -> str:
    # Put together by hand: a compact entry has tens of thousands of lines.
    name = file.name if _UNRESERVED(file.name) else quote(file.name)
    return f'{start}{name}","size":{file.size},"isDir":false,"modificationTime":{file.modified_ms}{_END}'


class Listed(NamedTuple):
    """A line of an entry file: a data file and the directory that its path names."""

    directory: PurePosixPath
    file: DataFile


def parse_entry(content: bytes) -> Iterator[Listed]:
    """The files that an entry file lists, in order. It must be exactly as written. Raises LogFormatError."""
    try:
        version, *lines = content.decode().split("\n")
        if version != _VERSION:
            raise LogFormatError(f'its first line should be "{_VERSION}" and is {version[:20]!r}')
        for line in lines:
            yield _common(line) or _any(line)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise LogFormatError(f"a line of it is not a description of a file ({error})") from error


def _common(line: str) -> Listed | None:
    """A line as nearly all of them are, which takes a tenth of the time; None if it is not such a line."""
    match = _COMMON(line)
    directory = _directory(match[1]) if match else None
    if not match or directory is None:
        return None
    return Listed(directory, DataFile(match[2], int(match[3]), int(match[4])))


@lru_cache(16)
def _directory(quoted: str) -> PurePosixPath | None:
    """The directory of a quoted path; None if it is not written like that."""
    directory = PurePosixPath(unquote(quoted))
    return directory if quote(str(directory)) == quoted else None


def _any(line: str) -> Listed:
    listed = _listed(json.loads(line))
    if line != _line(_start(listed.directory), listed.file):
        raise ValueError(f"{line[:200]!r} is not as it was written")
    return listed


def _listed(line: dict[str, object]) -> Listed:
    path, size, modified_ms = line["path"], line["size"], line["modificationTime"]
    if line["action"] != "add" or not (isinstance(size, int) and isinstance(modified_ms, int)):
        raise ValueError(f"{line}")
    place = PurePosixPath(unquote(urlsplit(str(path)).path))
    return Listed(place.parent, DataFile(place.name, size, modified_ms))


def superseded(entries: Iterable[int]) -> list[int]:
    """The entries that no reader needs any more: those before the last COMPACTS_KEPT compact entries."""
    ordered = sorted(entries)
    compacts = [entry for entry in ordered if is_compact(entry)]
    if len(compacts) <= COMPACTS_KEPT:
        return []
    return [entry for entry in ordered if entry < compacts[-COMPACTS_KEPT]]
