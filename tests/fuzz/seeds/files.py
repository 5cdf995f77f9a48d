"""Seeds of files: edits of a journal, a log and a state store, and the format file."""

from __future__ import annotations

import struct

from faircopy.storage.data_directory import FORMAT, OLDEST_FORMAT, DirectoryFormat
from tests.fuzz import logs
from tests.fuzz.journal_files import SOUND as SOUND_ENTRIES
from tests.fuzz.seeds.seed import Seeds

EDITS = {
    "none": b"",
    "flip": b"\0" + b"\0\0\x50" + b"\x01",
    "overwrite": b"\1" + b"\0\0\x60" + b"\4zero",
    "cut": b"\2" + b"\0\0\x70",
    "remove": b"\3" + b"\0\0\x40" + b"\0\x40",
    "insert": b"\4" + b"\0\0\x41" + b"\2xx",
    "copy": b"\5" + b"\0\0\x80" + b"\0\0\x40" + b"\0\x40",
}


def journal_files() -> Seeds:
    for name, edit in EDITS.items():
        yield name, b"\0\1\7" + edit
    yield "from-a-checkpoint", bytes([len(SOUND_ENTRIES) - 2])
    yield "a-file-is-missing", b"\0\1\0"


def log_files() -> Seeds:
    for name, edit in EDITS.items():
        yield name, bytes(4 * 4 + 8) + b"\0\7" + edit
    middle = logs.END_OFFSET // 2
    yield "reads", (struct.pack(">I", middle)[1:] + b"\4") * 4 + struct.pack(">q", 6_000)
    yield "a-file-is-missing", bytes(4 * 4 + 8) + b"\0\0"


def state_file() -> Seeds:
    yield from EDITS.items()
    yield "newest-head", b"\0" + b"\0\x10\x80" + b"\1"
    yield "older-head", b"\0" + b"\0\0\x80" + b"\1"


def format_file() -> Seeds:
    yield "sound", b"\0" + DirectoryFormat(FORMAT).encode()
    yield "before", b"\0" + DirectoryFormat(OLDEST_FORMAT - 1).encode()
    yield "odd", b"\1\3\1\0\4"
