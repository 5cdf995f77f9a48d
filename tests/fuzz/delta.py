"""The Delta log of a plain table: its versions, its checkpoints' names, and the directory with all of them.

Whatever somebody has made of it, reading it is right or refused, and what is written is read again. The
checkpoints themselves are Parquet, of which Arrow is given sound files only: their checksums are checked.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from crc32c import crc32c

from faircopy.publish import delta_log
from faircopy.publish.delta_directory import read_delta_log
from faircopy.publish.delta_log import DeltaFormatError, LastCheckpoint, Snapshot
from faircopy.publish.file_content import Content
from faircopy.publish.schema import SCHEMA
from tests.fuzz.choices import Choices
from tests.fuzz.documents import odd_document
from tests.fuzz.tables import FilesOfInput

LOG = Path("/plain/orders/_delta_log")
NAME = "d-0000000033-0..9.1f2e3d4c.parquet"
CONTENT = Content(10, {"orders": {0: 10}})
SOUND = [
    delta_log.PROTOCOL,
    delta_log.metadata("/plain/orders", SCHEMA, 1),
    delta_log.add(NAME, 1_234, 1, CONTENT, is_new=True),
    delta_log.remove(NAME, 2, is_gone=True),
]
FILES_MAX = 12
CHECKPOINT = delta_log.format_checkpoint(Snapshot(SOUND[1], {NAME: SOUND[2]}))


def feed_version(data: bytes) -> bool:
    """One version: what is read from it can be folded, asked, and written again."""
    try:
        actions = delta_log.parse_version(version_of(Choices(data)))
        snapshot = delta_log.applied(Snapshot(SOUND[1], {}), actions)
    except DeltaFormatError:
        return False
    for added in snapshot.adds.values():
        delta_log.size_of(added)
        with contextlib.suppress(DeltaFormatError):
            delta_log.ends_of(added)
    assert repr(delta_log.parse_version(delta_log.format_version(actions))) == repr(actions)
    return True


def version_of(choices: Choices) -> bytes:
    kind = choices.number() % 3
    if kind == 0:
        return choices.rest()
    lines: list[bytes] = []
    while not choices.is_over and len(lines) < FILES_MAX:
        sound = choices.one_of(SOUND)
        is_odd = choices.number() % 2
        lines.append(odd_document(sound, choices) if is_odd else json.dumps(sound).encode())
    return b"\n".join(lines)


def feed_directory(data: bytes) -> bool:
    """A directory with versions, a checkpoint, a file that names it, and odd names."""
    choices = Choices(data)
    content: dict[Path, bytes] = {}
    while not choices.is_over and len(content) < FILES_MAX:
        name, written = file_of(choices)
        content[LOG / name] = written
    try:
        version, snapshot = read_delta_log(FilesOfInput(content), LOG)
    except (DeltaFormatError, FileNotFoundError):
        return False
    assert version >= 0 and isinstance(snapshot.metadata, dict)
    return True


def file_of(choices: Choices) -> tuple[str, bytes]:
    """A file of the log, and its name."""
    match choices.number() % 4:
        case 0:
            return delta_log.version_name(choices.number() % 8), choices.some()
        case 1:
            return delta_log.version_name(choices.number() % 8), delta_log.format_version(SOUND[:3])
        case 2:
            return delta_log.checkpoint_name(choices.number() % 8), CHECKPOINT
    last = LastCheckpoint(choices.number() % 8, 3, crc32c(CHECKPOINT))
    sound = json.loads(delta_log.format_last_checkpoint(last))
    is_odd = choices.number() % 2
    return delta_log.LAST_CHECKPOINT, odd_document(sound, choices) if is_odd else json.dumps(sound).encode()
