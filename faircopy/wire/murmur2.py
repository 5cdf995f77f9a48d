"""The murmur2 hash as Kafka's Java client computes it, for the partition of a key."""

from __future__ import annotations

import struct

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The hash of `data`, as a Java int: from -2^31 to 2^31-1."""
    value = _SEED ^ len(data)
    words = len(data) // 4
    for word in struct.unpack_from(f"<{words}I", data):
        value = (value * _MULTIPLIER & _MASK) ^ _scrambled(word)
    if tail := data[words * 4 :]:
        value = (value ^ int.from_bytes(tail, "little")) * _MULTIPLIER & _MASK
    value = (value ^ value >> 13) * _MULTIPLIER & _MASK
    value ^= value >> 15
    return value - (1 << 32) if value >> 31 else value


def _scrambled(word: int) -> int:
    word = word * _MULTIPLIER & _MASK
    return (word ^ word >> 24) * _MULTIPLIER & _MASK


def partition_for(key: bytes, partitions: int) -> int:
    """The partition, out of `partitions`, to which Kafka's default partitioner sends `key`."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
