"""The format of a plain table's files: columns, encodings, and our part of the footer.

The columns that all tables have are named and typed as in Spark's Kafka source; `txid` is ours. As in Spark,
`headers` is null for a message without any. After them come the columns that a table has of its own
(`publish/table_columns.py`), all of them nullable. Footer, in the key-value metadata:

    faircopy.format  "1"
    faircopy.rows    "fitting" or "misfits", if rows of the other kind are in another table, or absent
    faircopy.held    JSON {"next_offsets": {topic: {partition: next offset}}, "topic_ids": {topic: id}}, of
                     the table up to and including this file
    faircopy.slices  JSON [[topic, partition, rows], ...], in the order of the rows
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import pyarrow as pa

from faircopy.errors import FaircopyError
from faircopy.publish.offsets import Held, held_from_json
from faircopy.settings.columns import DAY_COLUMN, MISFIT_COLUMN

FORMAT = 1

HEADER_TYPE = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS_TYPE = pa.list_(pa.field("element", HEADER_TYPE))
TIMESTAMP_TYPE = pa.timestamp("ms", tz="UTC")

SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", TIMESTAMP_TYPE, nullable=False),
        pa.field("timestampType", pa.int32(), nullable=False),
        pa.field("headers", HEADERS_TYPE),
        pa.field("txid", pa.string()),
    ]
)

MISFIT_FIELD = pa.field(MISFIT_COLUMN, pa.string())
DAY_FIELD = pa.field(DAY_COLUMN, pa.date32())

MEASURED = ["topic", "partition", "offset", "timestamp", DAY_COLUMN]
"""The columns whose smallest and largest values are in all files: readers leave out what can't fit."""


def writer_options(schema: pa.Schema) -> dict[str, Any]:
    """How files of a table with these columns are written."""
    own = [field for field in schema if field.name not in SCHEMA.names and not pa.types.is_nested(field.type)]
    texts = [field.name for field in own if pa.types.is_string(field.type) and field.name != MISFIT_COLUMN]
    measured = [field.name for field in own if field.name != MISFIT_COLUMN]
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": ["topic", "partition", "timestampType", "txid", *texts],
        "column_encoding": {"offset": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"},
        "write_statistics": [*(name for name in MEASURED if name in SCHEMA.names), *measured],
        "store_schema": False,
        "write_page_checksum": True,
    }


_FORMAT_KEY = "faircopy.format"
_HELD_KEY = "faircopy.held"
_SLICES_KEY = "faircopy.slices"
_ROWS_KEY = "faircopy.rows"


class FooterError(FaircopyError):
    """The footer of a data file lacks what faircopy writes there."""


class Slice(NamedTuple):
    """The rows of one partition, which are contiguous in a file."""

    topic: str
    partition: int
    rows: int


class Selection(StrEnum):
    """Which rows of the log a file has: all, those whose values fit, or the others (`plain.bad.values`)."""

    ALL = "all"
    FITTING = "fitting"
    MISFITS = "misfits"


class Footer(NamedTuple):
    """The content of a footer; `held` covers the table up to and including this file."""

    held: Held
    slices: list[Slice]
    selection: Selection = Selection.ALL


def footer_metadata(footer: Footer) -> dict[str, str]:
    """The key-value metadata for the file."""
    selected = {} if footer.selection is Selection.ALL else {_ROWS_KEY: footer.selection.value}
    return {
        _FORMAT_KEY: str(FORMAT),
        _HELD_KEY: json.dumps(footer.held.as_json(), separators=(",", ":")),
        _SLICES_KEY: json.dumps(footer.slices, separators=(",", ":")),
        **selected,
    }


def parse_footer(metadata: Mapping[bytes, bytes] | None, file: str) -> Footer:
    """The inverse of `footer_metadata`. Raises FooterError, naming `file`."""
    try:
        found = metadata or {}
        held = json.loads(found[_HELD_KEY.encode()])
        slices = json.loads(found[_SLICES_KEY.encode()])
        selection = Selection(found.get(_ROWS_KEY.encode(), b"all").decode())
        return Footer(held_from_json(held), [Slice(str(t), int(p), int(n)) for t, p, n in slices], selection)
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise FooterError(
            f"reading the footer of {file}: faircopy's part is missing or damaged ({error})"
        ) from None
