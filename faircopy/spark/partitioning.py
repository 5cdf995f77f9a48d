"""Which partition each row goes to, as Kafka's default partitioner chooses it: by the hash of its key.

Pure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from faircopy.spark.varints import Integers
from faircopy.wire.murmur2 import partition_for

_SEED = np.uint32(0x9747B28C)
_MULTIPLIER = np.uint32(0x5BD1E995)
_POSITIVE = np.uint32(0x7FFFFFFF)
LONG_KEY_BYTES = 256
"""Longer keys are hashed one by one: a table of all would be as wide as the longest."""

Words = npt.NDArray[np.uint32]


def partitions_of_keys(keys: Any, sizes: Integers, partitions: int) -> Integers:
    """The partition of each key, out of so many; -1 where the key is null. `keys` is a binary array, `sizes`
    are its lengths.
    """
    found = np.full(len(sizes), -1, np.int64)
    short = (sizes >= 0) & (sizes <= LONG_KEY_BYTES)
    if short.any():
        chosen = keys if short.all() else keys.filter(short)
        found[short] = (hashes(chosen, sizes[short]) & _POSITIVE) % np.uint32(partitions)
    for row in np.flatnonzero(sizes > LONG_KEY_BYTES):
        found[row] = partition_for(keys[int(row)].as_py(), partitions)
    return found


def hashes(keys: Any, sizes: Integers) -> Words:
    """The murmur2 hashes of short keys, none of which is null."""
    table = padded(keys, sizes)
    value = _SEED ^ sizes.astype(np.uint32)
    words = table.view("<u4").astype(np.uint32)
    for place in range(words.shape[1]):
        is_whole = sizes >= 4 * (place + 1)
        mixed = (value * _MULTIPLIER) ^ scrambled(words[:, place])
        value = np.where(is_whole, mixed, value)
        has_tail = (sizes > 4 * place) & ~is_whole  # the padding is zeros, and so adds nothing
        value = np.where(has_tail, (value ^ words[:, place]) * _MULTIPLIER, value)
    value = (value ^ (value >> np.uint32(13))) * _MULTIPLIER
    return value ^ (value >> np.uint32(15))


def scrambled(words: Words) -> Words:
    """What murmur2 makes of a word before it enters the hash."""
    words = words * _MULTIPLIER
    return (words ^ (words >> np.uint32(24))) * _MULTIPLIER


def padded(keys: Any, sizes: Integers) -> npt.NDArray[np.uint8]:
    """The bytes of each key, and zeros up to a whole number of words."""
    width = max(4, -(-int(sizes.max()) // 4) * 4)
    data = np.frombuffer(keys.buffers()[2] or b"", np.uint8)
    ends = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(sizes)]
    table = np.zeros((len(sizes), width), np.uint8)
    used = np.arange(width) < sizes[:, None]
    table[used] = data[(ends[:, None] + np.arange(width))[used]]
    return table
