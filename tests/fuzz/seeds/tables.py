"""Seeds of plain tables: their logs, their files, and the lines to and from the publisher."""

from __future__ import annotations

import json
from pathlib import PurePosixPath

from faircopy.publish import delta_log
from faircopy.publish.spark_log import FIRST_COMPACTS, FIRST_ENTRY, DataFile, format_entry
from faircopy.publish.table_state import format_state
from tests.fuzz import delta, values
from tests.fuzz.footers import KEYS, SOUND
from tests.fuzz.seeds.seed import Seeds, sized
from tests.fuzz.tables import SOUND_LINES

TABLE = PurePosixPath("/plain/orders")
DATA_FILE = DataFile("d-0000000032-0..9.1f2e3d4c.parquet", 1_234, 1_790_000_000_000)


def spark_log() -> Seeds:
    yield "one-file", format_entry(TABLE, [DATA_FILE])
    yield "two-files", format_entry(TABLE, [DATA_FILE, DATA_FILE._replace(name="ä b.parquet")])
    yield "no-file", format_entry(TABLE, [])


def spark_log_directory() -> Seeds:
    first = bytes([FIRST_COMPACTS[0], 2, 0, 1]) + bytes([FIRST_COMPACTS[1], 2, 0, 1])
    listed = bytes([FIRST_ENTRY]) + b"\0" + sized(format_entry(TABLE, [DATA_FILE]))
    yield "a-new-table", first + listed
    yield "odd-names", first + listed + b"\xff\3.xy\0\0\0"
    yield "a-gap", first + listed + bytes([FIRST_ENTRY + 2]) + b"\0" + sized(format_entry(TABLE, [DATA_FILE]))


def table_state() -> Seeds:
    yield "empty", b"\0" + format_state({})
    yield "one-file", b"\0" + format_state({DATA_FILE.name: DATA_FILE.modified_ms})
    yield "odd", b"\1\3\2\0\0"


def footers() -> Seeds:
    yield "sound", b""
    for number, key in enumerate(KEYS):
        yield key.removeprefix("faircopy."), bytes(number) + b"\1" + sized(SOUND[key].encode())
        yield f"odd-{key.removeprefix('faircopy.')}", bytes(number) + b"\2\3\0\3\0\0\0"


def delta_versions() -> Seeds:
    yield "sound", b"\0" + delta_log.format_version(delta.SOUND)
    for number in range(len(delta.SOUND)):
        yield f"action-{number}", bytes([1, number, 0])
    yield "odd", bytes([1, 2, 1, 3, 0, 3, 0, 0, 0])


def delta_directory() -> Seeds:
    first = bytes([1, 0])
    yield "first-version", first
    yield "checkpoint", first + bytes([2, 5, 3, 5, 0, 1, 6])
    yield "checkpoint-is-missing", first + bytes([3, 5, 0])
    yield "a-gap", first + bytes([1, 3])


def json_values() -> Seeds:
    sound = json.dumps(values.SOUND).encode()
    yield "sound", b"\1" + sized(sound) + b"\1" + sized(b"{}")
    yield "null", b"\1" + sized(b"null")
    yield "two-for-one", b"\1" + sized(b'{"id":1}{"id":2}') + b"\1" + sized(b"")
    yield "odd", b"\0\3\0\3\0\0\0"


def table_schema() -> Seeds:
    yield "scalars", b"id bigint, name string, price decimal(10,2), at timestamp"
    yield "nested", b"a array<struct<x: int, `y-z` array<date>>>"
    yield "unknown-type", b"id doubel"


def publisher_lines() -> Seeds:
    for number, line in enumerate(SOUND_LINES):
        verb = next(key for key in line if key not in ("id", "now_ms"))
        yield verb, b"\xff" + json.dumps(line).encode()
        yield f"odd-{verb}", bytes([number]) + b"\3\0\3\0\0\0"
