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
"""Longer keys are hashed one by one: each word of the longest would be a step for all."""

WORD_BYTES = 4
_MASKS = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF], np.uint32)
"""What is left of a word if only so many of its bytes count."""

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
    words, starts = words_of(keys)
    value = _SEED ^ sizes.astype(np.uint32)
    shortest, longest = int(sizes.min()), int(sizes.max())
    for at in range(0, longest, WORD_BYTES):
        word = words[starts + at]
        mixed = (value * _MULTIPLIER) ^ scrambled(word)
        if at + WORD_BYTES <= shortest:
            value = mixed
            continue
        rest = sizes - at
        tail = (value ^ (word & _MASKS[rest.clip(0, WORD_BYTES)])) * _MULTIPLIER
        value = np.where(rest >= WORD_BYTES, mixed, np.where(rest > 0, tail, value))
    value = (value ^ (value >> np.uint32(13))) * _MULTIPLIER
    return value ^ (value >> np.uint32(15))


def scrambled(words: Words) -> Words:
    """What murmur2 makes of a word before it enters the hash."""
    words = words * _MULTIPLIER
    return (words ^ (words >> np.uint32(24))) * _MULTIPLIER


def words_of(keys: Any) -> tuple[Words, Integers]:
    """The word that begins at each byte of some keys, and where each key begins. After the last key there are
    zeros, so that any key may be read as if it were the longest.
    """
    offsets = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(keys) + 1]
    first, end = int(offsets[0]), int(offsets[-1])
    data = np.zeros(end - first + LONG_KEY_BYTES + WORD_BYTES, np.uint8)
    data[: end - first] = np.frombuffer(keys.buffers()[2] or b"", np.uint8)[first:end]
    words: Words = np.ndarray((len(data) - WORD_BYTES + 1,), "<u4", data, 0, (1,))
    return words, offsets[:-1].astype(np.int64) - first
