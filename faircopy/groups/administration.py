"""Administrators' requests about groups: describe, list, delete.

A group without members now is Empty, if it has offsets or once had members. In Kafka's words, an unknown
group is Dead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from faircopy.groups.group_state import GroupState
from faircopy.groups.members import Member
from faircopy.groups.membership import Group
from faircopy.groups.offsets import OffsetStore, error_of
from faircopy.groups.registry import GroupRegistry
from faircopy.wire.error_codes import ErrorCode

Body = dict[str, Any]

GROUP_TYPE = "classic"  # the type of all groups: those of KIP-848 are not offered


class GroupAdministration:
    """Describes, lists and deletes groups.

    Whoever deletes offsets holds `deleting`, so that each decides by what the one before has left.
    """

    def __init__(self, registry: GroupRegistry, offsets: OffsetStore) -> None:
        self.deleting = asyncio.Lock()
        self._registry = registry
        self._offsets = offsets

    def description(self, group_id: str) -> Body:
        """A group, as DescribeGroups shows it."""
        group = self._registry.groups.get(group_id)
        members = [] if group is None else [_member_body(group, m) for m in group.members.values()]
        is_stable = group is not None and group.state is GroupState.STABLE
        return {
            "error_code": ErrorCode.NONE,
            "group_id": group_id,
            "group_state": self._state(group_id).value,
            "protocol_type": self._protocol_type(group_id),
            "protocol_data": (group and is_stable and group.protocol_name) or "",
            "members": members,
        }

    def _state(self, group_id: str) -> GroupState:
        group = self._registry.groups.get(group_id)
        if group is not None:
            return group.state
        return GroupState.EMPTY if self._is_kept(group_id) else GroupState.DEAD

    def _is_kept(self, group_id: str) -> bool:
        return self._offsets.kept_group(group_id) is not None or bool(self._offsets.fetch(group_id))

    def _protocol_type(self, group_id: str) -> str:
        group, kept = self._registry.groups.get(group_id), self._offsets.kept_group(group_id)
        if group is not None:
            return group.protocol_type or ""
        return kept.protocol_type if kept is not None else ""

    def listing(self, states: Sequence[str], types: Sequence[str] = ()) -> list[Body]:
        """The groups in one of `states` and of one of `types`, for ListGroups. Empty filters match all."""
        if types and GROUP_TYPE not in [each.lower() for each in types]:
            return []
        wanted = {state.lower() for state in states}
        # A dict, because it keeps order: groups with members first.
        kept = (group_id for group_id, _ in self._offsets.kept_groups())
        group_ids = dict.fromkeys((*self._registry.groups, *kept, *self._offsets.groups()))
        bodies = [self._listed(group_id) for group_id in group_ids]
        return [body for body in bodies if not wanted or body["group_state"].lower() in wanted]

    def _listed(self, group_id: str) -> Body:
        return {
            "group_id": group_id,
            "protocol_type": self._protocol_type(group_id),
            "group_state": self._state(group_id).value,
            "group_type": GROUP_TYPE,
        }

    async def delete(self, group_id: str) -> ErrorCode:
        """Delete a group without members, and its offsets. Durable when done."""
        is_settled = await self._offsets.settle(group_id)
        async with self.deleting:
            if self._registry.is_closed:
                return ErrorCode.NOT_COORDINATOR
            return await self._delete(group_id) if is_settled else ErrorCode.COORDINATOR_NOT_AVAILABLE

    async def _delete(self, group_id: str) -> ErrorCode:
        group = self._registry.groups.get(group_id)
        if group is None and not self._is_kept(group_id):
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group is not None:
            error = group.delete()
            if error:
                return error
            self._registry.run(group, ())
        return await error_of(self._offsets.delete_group(group_id))


def _member_body(group: Group, member: Member) -> Body:
    """A member. Its metadata and assignment are shown only while the group is stable."""
    is_stable = group.state is GroupState.STABLE
    return {
        "member_id": member.member_id,
        "group_instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "member_metadata": member.metadata(group.protocol_name or "") if is_stable else b"",
        "member_assignment": member.assignment if is_stable else b"",
    }
