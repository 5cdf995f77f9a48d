"""The data that consumers exchange through a group of protocol type "consumer": here, a member's assignment.

Layout of an assignment, not flexible in any version: version i16; topics: name, partitions i32; user data.
"""

from __future__ import annotations

import struct

from faircopy.wire.primitives import CUT_SHORT, MalformedMessage, read_count, read_text

_VERSION_BYTES = 2
_PARTITION = struct.Struct(">i")


def assigned_partitions(assignment: bytes) -> list[tuple[str, int]]:
    """The (topic, partition) pairs of an assignment. An unreadable one gives none: its content is the
    clients' own affair."""
    try:
        return list(_read(memoryview(assignment)))
    except (MalformedMessage, struct.error, *CUT_SHORT):
        return []


def _read(data: memoryview) -> list[tuple[str, int]]:
    if len(data) < _VERSION_BYTES:
        return []
    found = []
    topics, at = read_count(data, _VERSION_BYTES)
    for _ in range(topics):
        topic, at = read_text(data, at)
        partitions, at = read_count(data, at)
        for _ in range(partitions):
            found.append((topic or "", _PARTITION.unpack_from(data, at)[0]))
            at += _PARTITION.size
    return found
