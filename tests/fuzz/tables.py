"""Files of plain tables, but for the Parquet files themselves, and the lines to and from the publisher.

A table's files lie where others may write: they are copied, moved and repaired by hand.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path, PurePosixPath
from typing import Any

from faircopy.publish import names, spark_log, table_state
from faircopy.publish.files import Files
from faircopy.publish.live_files import NoTableError, live_files
from faircopy.publish.log_directory import LogDirectory, TableDamagedError
from faircopy.publish.offsets import held_from_json
from faircopy.publish.requests import (
    Chunk,
    Cut,
    Drop,
    Open,
    Publish,
    RequestError,
    Tidy,
    format_reply,
    format_request,
    parse_reply,
    parse_request,
    request_id,
)
from faircopy.publish.retired import RetiredFiles
from faircopy.publish.schema import FORMAT
from faircopy.publish.spark_log import DataFile, LogFormatError, entry_name, format_entry, parse_entry
from faircopy.publish.table_state import OtherFormatError
from faircopy.publish.trimming import Keep, Upkeep
from tests.fuzz.choices import Choices
from tests.fuzz.documents import odd_document

TABLE = Path("/plain/orders")
LOG = TABLE / names.SPARK_LOG
ENTRIES_MAX = 40
NAME_BYTES_MAX = 255  # of a file, on Linux


SOUND_LINE = json.loads(format_entry(PurePosixPath(TABLE), [DataFile("d-0.parquet", 1, 1)]).split(b"\n")[1])
SOUND_STATE = {
    "format": FORMAT,
    "retired": {"d-0000000040-0..9.1f2e3d4c.parquet": 1790000000000},
    "crc32c": 0,
}
BESIDE = TABLE.parent / "x"
LATE_MS = 1 << 62
SOUND_CUT = Cut("orders", "0f", 0, 0, 10, (Chunk("/log/0.log", 0, 100),), ((0, 9, "1.0.1"),))
SOUND_LINES = [
    json.loads(line)
    for line in (
        format_request(1, 0, Open("orders", "/plain/orders")),
        format_request(2, 0, Publish("orders", "/plain/orders", (SOUND_CUT,))),
        format_request(3, 0, Drop("orders", "/plain/orders")),
        format_request(4, 0, Tidy("orders", "/plain/orders", Upkeep((Keep("orders", {0: 60}),)))),
        format_reply(1, "opened", {"next_offsets": {"orders": {"0": 120}}, "topic_ids": {"orders": "0f"}}),
        format_reply(2, "failed", {"message": "no", "retry": True}),
    )
]


class FilesOfInput(Files):
    """The publisher's door to files that an input has made; what is deleted is gone."""

    def __init__(self, content: dict[Path, bytes]) -> None:
        self.content = content

    def list_directory(self, directory: Path) -> dict[str, int]:
        return {path.name: len(data) for path, data in self.content.items() if path.parent == directory}

    def is_directory(self, path: Path) -> bool:
        return any(other.parent == path for other in self.content)

    def read(self, path: Path, position: int = 0, size: int = -1) -> bytes:
        if path not in self.content:
            raise FileNotFoundError(2, "no such file", str(path))
        content = self.content[path]
        return content[position:] if size < 0 else content[position : position + size]

    def delete(self, path: Path) -> None:
        self.content.pop(Path(os.path.normpath(path)), None)


def feed_entry(data: bytes) -> bool:
    """One entry file: what is read from it is what is written to it."""
    try:
        listed = list(parse_entry(data))
    except LogFormatError:
        return False
    directories = {directory for directory, _ in listed}
    if len(directories) == 1:
        assert format_entry(directories.pop(), [file for _, file in listed]) == data
    return True


def feed_directory(data: bytes) -> bool:
    """Files of a log directory: entries with odd fields, entries with odd bytes, and names of any kind."""
    choices = Choices(data)
    content: dict[Path, bytes] = {}
    while not choices.is_over and len(content) < ENTRIES_MAX:
        content[LOG / name_of(choices)] = entry_of(choices)
    log = LogDirectory(FilesOfInput(dict(content)), TABLE)
    with contextlib.suppress(TableDamagedError):
        log.load()
        assert log.next_entry >= 0
    with contextlib.suppress(TableDamagedError, NoTableError):
        live_files(FilesOfInput(content), TABLE)
        return True
    return False


def name_of(choices: Choices) -> str:
    """The name of an entry, or any that a file can have."""
    kind = choices.number()
    if kind < 0xF0:
        return entry_name(kind)
    name = choices.take(choices.number() % NAME_BYTES_MAX).decode("utf-8", "surrogateescape")
    return name.translate({0: None, ord("/"): None}).strip(".") or "x"


def entry_of(choices: Choices) -> bytes:
    """The content of an entry."""
    kind = choices.number() % 8
    if kind == 0:
        return choices.some()
    if kind == 1:
        return b"v1\n" + odd_document(SOUND_LINE, choices)
    files = [
        DataFile(name_of(choices), choices.signed(8), choices.signed(8))
        for _ in range(choices.number() % ENTRIES_MAX)
    ]
    directory = TABLE if choices.number() % 8 else TABLE.with_name("moved")
    with contextlib.suppress(UnicodeEncodeError):
        return format_entry(PurePosixPath(directory), files)
    return b""


def feed_state(data: bytes) -> bool:
    """The file `_faircopy.json`: odd files with the right checksum, a changed one, or any bytes.

    Whatever it says, only data files of the table are deleted, and what is saved is read again.
    """
    choices = Choices(data)
    state = state_of(choices)
    files = FilesOfInput({TABLE / names.STATE: state, BESIDE: b"", TABLE / names.LOCK: b""})
    retired = RetiredFiles(files, TABLE)
    with contextlib.suppress(TableDamagedError, OtherFormatError):
        retired.load()
        retired.delete_expired(LATE_MS, grace_ms=1)
        assert {BESIDE, TABLE / names.LOCK} <= files.content.keys()
        assert table_state.format_state(table_state.parse_state(state, "orders")) == state
        return True
    return False


def state_of(choices: Choices) -> bytes:
    """What somebody may have made of the file."""
    match choices.number() % 3:
        case 0:
            return choices.rest()
        case 1:
            return odd_document(SOUND_STATE, choices)
    with contextlib.suppress(ValueError, RecursionError):  # an odd document that Python can't read or write
        return table_state.format_state(json.loads(odd_document(SOUND_STATE["retired"], choices)))
    return b""


def feed_line(data: bytes) -> bool:
    """A line to the publisher, which answers to its id whatever it says, and a line from it.

    The first byte chooses a sound line to change, or any bytes.
    """
    choices = Choices(data)
    number = choices.number()
    data = odd_document(SOUND_LINES[number], choices) if number < len(SOUND_LINES) else choices.rest()
    assert request_id(data) is None or isinstance(request_id(data), int)
    is_taken = False
    with contextlib.suppress(RequestError):
        number, now_ms, request = parse_request(data)
        if isinstance(request, Publish):
            check_cuts(request.partitions)
        assert parse_request(format_request(number, now_ms, request)) == (number, now_ms, request)
        is_taken = True
    with contextlib.suppress(RequestError):
        _, verb, body = parse_reply(data)
        if verb == "opened":
            check_opened(body)
        is_taken = True
    return is_taken


def check_cuts(cuts: tuple[Cut, ...]) -> None:
    """What is read from files is within bounds that files can have."""
    for cut in cuts:
        assert 0 <= cut.first_offset <= cut.end_offset
        assert all(
            min(chunk.position, chunk.size) >= 0 and chunk.path.startswith("/") for chunk in cut.chunks
        )


def check_opened(body: dict[str, Any]) -> None:
    """What the broker makes of the answer to `open`; that the publisher is its own, is not checked."""
    with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError, OverflowError):
        held_from_json(body)


assert spark_log.FIRST_ENTRY < 0xF0, "an input can name the first entries in a byte"
