"""The content of a backup: `manifest.json`, written last, so that a backup without it is not finished. Pure.

    {"backup": 1, "cluster": "<id>", "made": "<when, UTC>",
     "files": {"<path>": [bytes, modified (ns), CRC32C], ...},
     "crc32c": <of the JSON of all above>}

"modified" is the time of the original file: a file with the same size and time does not have to be copied
again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from crc32c import crc32c

from faircopy.errors import FaircopyError

FILE = "manifest.json"
VERSION = 1


class BadBackup(FaircopyError):
    """A directory is not a backup, or the backup is damaged."""


class CopiedFile(NamedTuple):
    """A file of a backup."""

    size: int
    modified_ns: int
    checksum: int


class Manifest(NamedTuple):
    """All files of a backup, by their paths in it."""

    cluster: str
    made: str
    files: Mapping[str, CopiedFile]


def encode_manifest(manifest: Manifest) -> bytes:
    """The content of the file."""
    document = {
        "backup": VERSION,
        "cluster": manifest.cluster,
        "made": manifest.made,
        "files": dict(manifest.files),
    }
    return json.dumps(document | {"crc32c": checksum_of(document)}).encode()


def decode_manifest(content: bytes) -> Manifest:
    """The manifest in a file. Raises BadBackup."""
    try:
        document = json.loads(content)
        stored = document.pop("crc32c")
        files = {path: CopiedFile(*map(int, copied)) for path, copied in document["files"].items()}
        manifest = Manifest(str(document["cluster"]), str(document["made"]), files)
        version = document["backup"]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise BadBackup(f"its {FILE} can't be read: {error!r}") from error
    if version != VERSION:
        raise BadBackup(
            f"its {FILE} has version {version}, and this faircopy knows {VERSION}: use another faircopy"
        )
    if stored != checksum_of(document):
        raise BadBackup(f"its {FILE} does not match its checksum")
    return manifest


def checksum_of(document: Mapping[str, object]) -> int:
    """The CRC-32C of a document as JSON, which shows that the document was not changed since."""
    return int(crc32c(json.dumps(document).encode()))
