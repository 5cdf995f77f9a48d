"""The Delta log of a plain table, `_delta_log`: the format, as far as faircopy writes it.

It lists what batch reads shall read (the merged files, and the others that none of them covers) to all that
read Delta tables: delta-rs, polars, DuckDB, Spark with Delta's jar. Spark's log is the truth. This one is
derived from it: when a table is opened, it is made to list the same files.

    00000000000000000000.json                 version 0: protocol, metaData, and the files so far
    00000000000000000001.json                 version 1: a JSON object for each file that comes or goes
    00000000000000000063.checkpoint.parquet   version 63 as a whole, a row for each object
    _last_checkpoint                          {"version": 63, "size": <rows>, "crc32c": <of the checkpoint>}
    _read_no_subdirectories.parquet           not Parquet

Version N is one publication, or one merge. After each CHECKPOINT_INTERVAL-th follows a checkpoint, and
versions before the last but one are deleted. Paths are relative, so a table can be moved.

A reader that looks for Parquet files in subdirectories, too, as DuckDB does, would count the rows of the
checkpoints. So there is a file that makes it fail instead.

Of a file's columns nothing is said, only how many rows it has. Some readers, as delta-rs, need to know all
columns of a file, or none: they take a column without bounds, of which others have some, for one without any
value that fits. And there is no bound of a column that is null throughout. So readers leave rows out by the
footers of files, which are as near as the log.

Any reader can read it (reader version 1). But the table is the broker's to write: it asks of writers a
feature that nobody has, so all others refuse (writer version 7).
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, unquote
from uuid import NAMESPACE_URL, uuid5

import pyarrow as pa
import pyarrow.parquet as pq

from faircopy.errors import FaircopyError
from faircopy.publish.file_content import Content
from faircopy.publish.offsets import NextOffsets, offsets_from_json

CHECKPOINT_INTERVAL = 64
CHECKPOINTS_KEPT = 2
LAST_CHECKPOINT = "_last_checkpoint"
GUARD = "_read_no_subdirectories.parquet"
GUARD_CONTENT = (
    b"Not Parquet, so that a search of subdirectories fails. Read the Delta log, or *.parquet above.\n"
)

_ENDS = "faircopy.ends"  # JSON {topic: {partition: the offset after the last one in the file}}

Action = dict[str, Any]  # one line of a version

_VERSION = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")

PROTOCOL: Action = {
    "protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["faircopyWritesAlone"]}
}

_TYPES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.binary(): "binary",
    pa.string(): "string",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
}

_STRINGS = pa.map_(pa.string(), pa.string())
_CHECKPOINT_SCHEMA = pa.schema(
    [
        pa.field(
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("writerFeatures", pa.list_(pa.string())),
                ]
            ),
        ),
        pa.field(
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", _STRINGS)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("configuration", _STRINGS),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        pa.field(
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", _STRINGS),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                    ("tags", _STRINGS),
                ]
            ),
        ),
        pa.field(
            "remove",
            pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())]),
        ),
    ]
)


class DeltaFormatError(FaircopyError):
    """A file of a table's `_delta_log` is not what faircopy writes."""


class Snapshot(NamedTuple):
    """A version as a whole: its metaData, and the add of each file by the file's name."""

    metadata: Action
    adds: dict[str, Action]


def version_name(version: int) -> str:
    """The name of a version's file."""
    return f"{version:020}.json"


def checkpoint_name(version: int) -> str:
    """The name of a version's checkpoint."""
    return f"{version:020}.checkpoint.parquet"


def version_of_name(name: str) -> int | None:
    """The version in the name of a version's file, or None."""
    match = _VERSION.fullmatch(name)
    return int(match[1]) if match else None


def checkpoint_of_name(name: str) -> int | None:
    """The version in the name of a checkpoint, or None."""
    match = _CHECKPOINT.fullmatch(name)
    return int(match[1]) if match else None


def is_checkpoint(version: int) -> bool:
    """Whether this version gets a checkpoint."""
    return (version + 1) % CHECKPOINT_INTERVAL == 0


def versions_from(first: int, found: Iterable[str]) -> range:
    """The versions in a log from this one on. Raises DeltaFormatError if one is missing."""
    versions = {version for name in found if (version := version_of_name(name)) is not None}
    after = range(first, max(versions, default=first - 1) + 1)
    for version in after:
        if version not in versions:
            raise DeltaFormatError(f"version {version} is missing")
    return after


def superseded(found: Iterable[str]) -> list[str]:
    """The files of a log that no reader needs any more: those before the last CHECKPOINTS_KEPT."""
    listed = list(found)
    checkpoints = sorted(version for name in listed if (version := checkpoint_of_name(name)) is not None)
    if len(checkpoints) < CHECKPOINTS_KEPT:
        return []
    oldest = checkpoints[-CHECKPOINTS_KEPT]
    return [name for name in listed if 0 <= _version_in(name) < oldest]


def _version_in(name: str) -> int:
    """The version of a file of either kind; -1 for other files."""
    found = (version_of_name(name), checkpoint_of_name(name))
    return next((version for version in found if version is not None), -1)


def metadata(table: str, schema: pa.Schema, now_ms: int) -> Action:
    """The description of a new table with these columns in the directory `table`."""
    return {
        "metaData": {
            "id": str(uuid5(NAMESPACE_URL, f"file://{table}?{now_ms}")),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": _schema_string(schema),
            "partitionColumns": [],
            "configuration": {},
            "createdTime": now_ms,
        }
    }


def with_schema(described: Action, schema: pa.Schema) -> Action:
    """The description of a table that has other columns now."""
    return {"metaData": described["metaData"] | {"schemaString": _schema_string(schema)}}


def _schema_string(schema: pa.Schema) -> str:
    return json.dumps(_struct(schema), separators=(",", ":"))


def _struct(fields: Iterable[pa.Field]) -> Action:
    # Delta's columns are nullable, so that readers need not prove that ours are not.
    return {
        "type": "struct",
        "fields": [
            {"name": field.name, "type": _type(field.type), "nullable": True, "metadata": {}}
            for field in fields
        ],
    }


def _type(kind: pa.DataType) -> Any:
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _type(kind.value_type), "containsNull": True}
    if pa.types.is_struct(kind):
        return _struct(kind)
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return "timestamp" if pa.types.is_timestamp(kind) else _TYPES[kind]


def add(name: str, size: int, now_ms: int, content: Content, *, is_new: bool) -> Action:
    """A file comes; `is_new` says whether with rows that were not there before."""
    return {
        "add": {
            "path": quote(name),
            "partitionValues": {},
            "size": size,
            "modificationTime": now_ms,
            "dataChange": is_new,
            "stats": json.dumps({"numRecords": content.rows}, separators=(",", ":")),
            "tags": {_ENDS: json.dumps(content.ends, separators=(",", ":"))},
        }
    }


def size_of(added: Action) -> int | None:
    """The size of a listed file, if the log says it."""
    size: int | None = added["add"].get("size")
    return size


def ends_of(added: Action) -> NextOffsets:
    """Up to which offset a file goes, in each partition that it has rows of. Raises DeltaFormatError."""
    try:
        return offsets_from_json(json.loads(added["add"]["tags"][_ENDS]))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise DeltaFormatError(f"it does not say which offsets a file has ({error!r})") from error


def remove(name: str, now_ms: int, *, is_gone: bool) -> Action:
    """A file goes; `is_gone` says whether its rows go with it."""
    return {"remove": {"path": quote(name), "deletionTimestamp": now_ms, "dataChange": is_gone}}


def format_version(actions: Iterable[Action]) -> bytes:
    """The bytes of a version's file."""
    return "\n".join(json.dumps(action, separators=(",", ":")) for action in actions).encode()


def parse_version(content: bytes) -> list[Action]:
    """The inverse of `format_version`. Raises DeltaFormatError."""
    try:
        return [_checked(json.loads(line)) for line in content.decode().split("\n")]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise DeltaFormatError(f"a line of it is not a description of a file ({error})") from error


def _checked(action: Any) -> Action:
    (kind,) = dict(action)
    if kind not in _CHECKPOINT_SCHEMA.names or not isinstance(action[kind], dict):
        raise ValueError(f"{kind!r} is unknown")
    if kind in ("add", "remove") and not isinstance(action[kind]["path"], str):
        raise ValueError("a file has no path")
    return dict(action)


def applied(before: Snapshot | None, actions: Sequence[Action]) -> Snapshot:
    """The snapshot after a version. Raises DeltaFormatError if there is none."""
    found = before.metadata if before else None
    adds = dict(before.adds) if before else {}
    for action in actions:
        if "metaData" in action:
            found = action
        elif "add" in action:
            adds[unquote(action["add"]["path"])] = action
        elif "remove" in action:
            adds.pop(unquote(action["remove"]["path"]), None)
    if found is None:
        raise DeltaFormatError("no version has the table's description")
    return Snapshot(found, adds)


def format_checkpoint(snapshot: Snapshot) -> bytes:
    """The bytes of a checkpoint."""
    actions = [PROTOCOL, snapshot.metadata, *snapshot.adds.values()]
    written = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(actions, schema=_CHECKPOINT_SCHEMA), written, store_schema=False)
    return written.getvalue()


def parse_checkpoint(content: bytes) -> Snapshot:
    """The inverse of `format_checkpoint`. Raises DeltaFormatError."""
    try:
        rows = pq.read_table(io.BytesIO(content), use_threads=False).to_pylist(maps_as_pydicts="strict")
        actions = [{kind: value for kind, value in row.items() if value is not None} for row in rows]
        return applied(None, [_checked(action) for action in actions])
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise DeltaFormatError(f"it is not a checkpoint ({error})") from error


class LastCheckpoint(NamedTuple):
    """What the file of this name says of the newest checkpoint: its version, its rows, and its checksum."""

    version: int
    size: int
    crc32c: int


def format_last_checkpoint(last: LastCheckpoint) -> bytes:
    """The bytes of the file that names the newest checkpoint."""
    return json.dumps(last._asdict()).encode()


def parse_last_checkpoint(content: bytes) -> LastCheckpoint:
    """The inverse of `format_last_checkpoint`. Raises DeltaFormatError."""
    try:
        return LastCheckpoint(**{name: int(value) for name, value in json.loads(content).items()})
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise DeltaFormatError(f"it does not name a checkpoint ({error})") from error
