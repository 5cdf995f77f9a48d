"""The topics that a consumer subscribes to, from its metadata of protocol type "consumer".

Only the start of the metadata is read: version i16, then an array of topics as non-flexible strings.
"""

from __future__ import annotations

from collections.abc import Iterable

from faircopy.groups.members import Member
from faircopy.wire.primitives import CUT_SHORT, MalformedMessage, read_count, read_text

CONSUMER_PROTOCOL_TYPE = "consumer"
_VERSION_BYTES = 2


def subscribed_topics(members: Iterable[Member]) -> set[str] | None:
    """The topics that any of the members may read. None if a member's metadata can't be decoded."""
    topics: set[str] = set()
    for member in members:
        for _, metadata in member.protocols:
            try:
                topics |= set(_topics(memoryview(metadata)))
            except (MalformedMessage, *CUT_SHORT):
                return None
    return topics


def _topics(metadata: memoryview) -> Iterable[str]:
    count, at = read_count(metadata, _VERSION_BYTES)
    for _ in range(count):
        topic, at = read_text(metadata, at)
        yield topic or ""
