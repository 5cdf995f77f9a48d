"""Reads a plain table as foreign programs do, with no code of the publisher: as a batch read of Spark, as a
stream, and by the Delta log.
"""

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
    """The contents of the files that a batch read takes, in the order of the log."""
    contents = []
    for line in listed(files, directory):
        if line["size"]:
            contents.append(_content(files, line))
            assert len(contents[-1]) == line["size"]
    return contents


def streamed_contents(files: Files, directory: Path) -> list[bytes]:
    """The contents of the files that a stream takes, in the order of the log."""
    return [_content(files, line) for line in listed(files, directory) if line["modificationTime"] >= 0]


def _content(files: Files, line: dict[str, Any]) -> bytes:
    assert line["path"].startswith("file:///")
    return files.read(Path(unquote(line["path"].removeprefix("file://"))))


def delta_contents(files: Files, directory: Path) -> list[bytes]:
    """The contents of the files that the Delta log lists, in any order."""
    log = directory / "_delta_log"
    found = sorted(name for name in files.list_directory(log) if not name.startswith((".", "_")))
    checkpoints = [name for name in found if name.endswith(".checkpoint.parquet")]
    actions: list[dict[str, Any]] = []
    first = 0
    if checkpoints:
        rows = pq.read_table(io.BytesIO(files.read(log / checkpoints[-1]))).to_pylist()
        actions = [{kind: value for kind, value in row.items() if value is not None} for row in rows]
        first = int(checkpoints[-1][:20]) + 1
    versions = [name for name in found if name.endswith(".json") and int(name[:20]) >= first]
    assert [int(name[:20]) for name in versions] == list(range(first, first + len(versions)))
    for name in versions:
        actions += [json.loads(line) for line in files.read(log / name).decode().split("\n")]
    sizes: dict[str, int] = {}
    for action in actions:
        if "add" in action:
            sizes[unquote(action["add"]["path"])] = action["add"]["size"]
        elif "remove" in action:
            del sizes[unquote(action["remove"]["path"])]
    contents = [files.read(directory / name) for name in sizes]
    assert [len(content) for content in contents] == list(sizes.values())
    return contents


def read_table(files: Files, directory: Path) -> pa.Table:
    """All rows, in the order of the log."""
    return pa.concat_tables(pq.read_table(io.BytesIO(content)) for content in live_contents(files, directory))


def read_offsets(files: Files, directory: Path) -> dict[tuple[str, int], list[int]]:
    """The offsets of each partition, in the order of the log; the same for batch reads and streams."""
    found = offsets_in(live_contents(files, directory))
    assert found == offsets_in(streamed_contents(files, directory))
    return found


def offsets_in(contents: list[bytes]) -> dict[tuple[str, int], list[int]]:
    """The offsets of each partition, in the order of the files."""
    found: dict[tuple[str, int], list[int]] = {}
    for content in contents:
        for topic, partition, offset in _offsets_in(content):
            found.setdefault((topic, partition), []).append(offset)
    return found


@lru_cache(10_000)
def _offsets_in(content: bytes) -> list[tuple[str, int, int]]:
    table = pq.ParquetFile(io.BytesIO(content)).read(columns=["topic", "partition", "offset"])
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
