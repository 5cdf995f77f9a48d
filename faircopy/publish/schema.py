"""The format of a plain table's files: columns, encodings, and our part of the footer.

The columns have the names and types of Spark's Kafka source; `txid` is ours. As in Spark, `headers` is null
for a message without any. Footer, in the key-value metadata:

    faircopy.format  "3"; all that "2" has is the same
    faircopy.held    JSON {"next_offsets": {topic: {partition: next offset}}, "topic_ids": {topic: id}}, of
                     the table up to and including this file
    faircopy.slices  JSON [[topic, partition, rows], ...], in the order of the rows
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from faircopy.errors import FaircopyError
from faircopy.publish.offsets import Held, held_from_json

FORMAT = 3

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

MEASURED = ["topic", "partition", "offset", "timestamp"]
"""The columns whose smallest and largest values files and the Delta log have, so that readers skip files."""

WRITER_OPTIONS: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 1,
    "use_dictionary": ["topic", "partition", "timestampType", "txid"],
    "column_encoding": {"offset": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"},
    "write_statistics": MEASURED,
    "store_schema": False,
    "write_page_checksum": True,
}

_FORMAT_KEY = "faircopy.format"
_HELD_KEY = "faircopy.held"
_SLICES_KEY = "faircopy.slices"


class FooterError(FaircopyError):
    """The footer of a data file lacks what faircopy writes there."""


class Slice(NamedTuple):
    """The rows of one partition, which are contiguous in a file."""

    topic: str
    partition: int
    rows: int


class Footer(NamedTuple):
    """The content of a footer; `held` covers the table up to and including this file."""

    held: Held
    slices: list[Slice]


def footer_metadata(footer: Footer) -> dict[str, str]:
    """The key-value metadata for the file."""
    return {
        _FORMAT_KEY: str(FORMAT),
        _HELD_KEY: json.dumps(footer.held.as_json(), separators=(",", ":")),
        _SLICES_KEY: json.dumps(footer.slices, separators=(",", ":")),
    }


def parse_footer(metadata: Mapping[bytes, bytes] | None, file: str) -> Footer:
    """The inverse of `footer_metadata`. Raises FooterError, naming `file`."""
    try:
        found = metadata or {}
        held = json.loads(found[_HELD_KEY.encode()])
        slices = json.loads(found[_SLICES_KEY.encode()])
        return Footer(held_from_json(held), [Slice(str(t), int(p), int(n)) for t, p, n in slices])
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise FooterError(
            f"reading the footer of {file}: faircopy's part is missing or damaged ({error})"
        ) from None
