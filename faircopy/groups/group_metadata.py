"""The members of a consumer group: what survives a restart of the broker, and its bytes in an offsets
journal.

A payload is a line of JSON. After it come the members' metadata and assignments, one after another:

    {"group": g, "membership": {"generation": n, "protocol_type": t, "protocol": p, "leader": member id,
        "changed_ms": steady clock, "members": [[member id, instance id, client id, client host,
        session timeout (ms), rebalance timeout (ms), [[protocol, bytes of its metadata], ...],
        bytes of the assignment], ...]}}
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

LINE_END = b"\n"  # the JSON written here contains none


class MemberMetadata(NamedTuple):
    """A member of a stable generation. `protocols` are names, each with the member's metadata for it."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes


class GroupMetadata(NamedTuple):
    """A stable generation, or an empty group if there are no members. `changed_ms` is by the steady clock."""

    generation: int
    protocol_type: str | None
    protocol_name: str | None = None
    leader_id: str | None = None
    members: tuple[MemberMetadata, ...] = ()
    changed_ms: int = 0


class BadGroupMetadata(ValueError):
    """The bytes are not those of a group."""


def encode_group(group: str, metadata: GroupMetadata) -> bytes:
    """The payload that stores a group's present state."""
    membership = {
        "generation": metadata.generation,
        "protocol_type": metadata.protocol_type,
        "protocol": metadata.protocol_name,
        "leader": metadata.leader_id,
        "changed_ms": metadata.changed_ms,
        "members": [_sizes_of(member) for member in metadata.members],
    }
    line = json.dumps({"group": group, "membership": membership}, separators=(",", ":")).encode()
    fields = (field for member in metadata.members for field in _fields_of(member))
    return b"".join((line, LINE_END, *fields))


def _sizes_of(member: MemberMetadata) -> list[Any]:
    protocols = [[name, len(metadata)] for name, metadata in member.protocols]
    return [*member[:6], protocols, len(member.assignment)]


def _fields_of(member: MemberMetadata) -> Iterator[bytes]:
    yield from (metadata for _, metadata in member.protocols)
    yield member.assignment


def decode_group(membership: Any, rest: bytes) -> GroupMetadata:
    """The group in a payload: its `membership`, and `rest` after the line. Raises BadGroupMetadata."""
    fields = MemberBytes(rest)
    members = tuple(_member(fields, *member) for member in membership["members"])
    if fields.left:
        raise BadGroupMetadata(f"{fields.left} bytes too many after the members of a group")
    return GroupMetadata(
        int(membership["generation"]),
        membership["protocol_type"],
        membership["protocol"],
        membership["leader"],
        members,
        int(membership["changed_ms"]),
    )


class MemberBytes:
    """The bytes after a payload's line: metadata and assignments, taken one at a time."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self._content) - self._at

    def take(self, size: int) -> bytes:
        """The next `size` bytes. Raises BadGroupMetadata."""
        if not 0 <= size <= self.left:
            raise BadGroupMetadata(f"a member of a group needs {size} bytes, but {self.left} are left")
        self._at += size
        return self._content[self._at - size : self._at]


def _member(
    fields: MemberBytes, member_id: str, instance_id: str | None, client_id: str, client_host: str,
    session_timeout_ms: int, rebalance_timeout_ms: int, protocols: list[tuple[str, int]],
    assignment_bytes: int,
) -> MemberMetadata:  # fmt: skip
    said = tuple((name, fields.take(size)) for name, size in protocols)
    return MemberMetadata(
        member_id, instance_id, client_id, client_host, session_timeout_ms, rebalance_timeout_ms, said,
        fields.take(assignment_bytes),
    )  # fmt: skip
