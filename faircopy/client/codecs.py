"""The compressions of record batches that are written, by Kafka's names. Pure."""

from __future__ import annotations

from typing import Any

import cramjam
import zstandard

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""Names of compressions, with their numbers in a batch's attributes."""


def compressed(codec: int, section: Any) -> Any:
    """The records section under a compression."""
    if codec == CODECS["gzip"]:
        return memoryview(cramjam.gzip.compress(section))
    if codec == CODECS["snappy"]:
        return memoryview(cramjam.snappy.compress_raw(section))
    if codec == CODECS["lz4"]:
        return memoryview(cramjam.lz4.compress(section))
    return zstandard.ZstdCompressor(level=1).compress(section) if codec == CODECS["zstd"] else section
