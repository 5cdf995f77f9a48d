"""Reads a plain table as Spark does, by its log, with no code of the publisher."""

from __future__ import annotations

import io
import json
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from faircopy.publish.files import Files

KEYS = {"path", "size", "isDir", "modificationTime", "blockReplication", "blockSize", "action"}


def listed(files: Files, directory: Path) -> list[dict[str, Any]]:
    """What the log lists, in order; every file that a reader needs must be there and whole."""
    log = directory / "_spark_metadata"
    entries = {}
    for name in files.list_directory(log):
        digits = name.removesuffix(".compact")
        if digits.isdigit():
            entries[int(digits)] = name
    compacts = sorted(entry for entry, name in entries.items() if name.endswith(".compact"))
    interval = compacts[-1] - compacts[-2]
    assert interval == 16
    newest = max(entries)
    first = newest if (newest + 1) % interval == 0 else (newest + 1) // interval * interval - 1
    lines: list[dict[str, Any]] = []
    for entry in range(first, newest + 1):
        version, *rest = files.read(log / entries[entry]).decode().split("\n")
        assert version == "v1"
        lines += [json.loads(line) for line in rest if line]
    for line in lines:
        assert line.keys() == KEYS
        assert (line["isDir"], line["blockReplication"], line["action"]) == (False, 1, "add")
    return lines


def live_contents(files: Files, directory: Path) -> list[bytes]:
    """The contents of the live files, in the order of the log."""
    contents = []
    for line in listed(files, directory):
        assert line["path"].startswith("file:///")
        contents.append(files.read(Path(unquote(line["path"].removeprefix("file://")))))
        assert len(contents[-1]) == line["size"]
    return contents


def read_table(files: Files, directory: Path) -> pa.Table:
    """All rows, in the order of the log."""
    return pa.concat_tables(pq.read_table(io.BytesIO(content)) for content in live_contents(files, directory))


def read_offsets(files: Files, directory: Path) -> dict[tuple[str, int], list[int]]:
    """The offsets of each partition, in the order of the log."""
    found: dict[tuple[str, int], list[int]] = {}
    for content in live_contents(files, directory):
        for topic, partition, offset in _offsets_in(content):
            found.setdefault((topic, partition), []).append(offset)
    return found


@lru_cache(10_000)
def _offsets_in(content: bytes) -> list[tuple[str, int, int]]:
    table = pq.ParquetFile(io.BytesIO(content)).read(columns=["topic", "partition", "offset"])
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
