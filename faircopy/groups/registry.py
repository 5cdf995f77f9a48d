"""The groups of a broker, with their timers and the requests that wait for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from faircopy.errors import FaircopyError
from faircopy.groups.members import (
    AnswerJoin,
    AnswerSync,
    Effect,
    GroupLimits,
    HeldMemory,
    JoinAnswer,
    StoreGroup,
    WakeAt,
)
from faircopy.groups.membership import Group
from faircopy.groups.offsets import OffsetStore
from faircopy.wire.error_codes import ErrorCode

log = logging.getLogger(__name__)


class Timer(Protocol):
    """What `call_later` returns."""

    def cancel(self) -> None:
        """Cancel the call, if it has not been made yet."""


CallLater = Callable[[float, Callable[[], None]], Timer]
"""`call_later(delay in seconds, function)`, as that of an asyncio loop."""

NowMs = Callable[[], int]
"""Monotonic milliseconds."""

WhenGone = Callable[[Callable[[], None]], None]
"""`when_gone(function)` calls the function if the client disconnects before it has its answer."""


class GroupsClosed(FaircopyError):
    """The groups have another coordinator now."""


class GroupRegistry:
    """Holds the groups that are not idle, and carries out their effects. The store has all others.

    `held` is the memory of all groups of the process, including those of other registries.
    """

    def __init__(
        self, limits: GroupLimits, held: HeldMemory, store: OffsetStore, call_later: CallLater, now_ms: NowMs
    ) -> None:
        self.groups: dict[str, Group] = {}
        self.held = held
        self.now_ms = now_ms
        self._store = store
        self.is_closed = False
        self._bytes: dict[str, int] = {}
        self._limits = limits
        self._call_later = call_later
        self._timers: dict[str, Timer] = {}
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._last_ticket = 0

    def restore(self) -> None:
        """Restore the stored groups that have members."""
        for group_id, kept in self._store.kept_groups():
            if kept.has_members:
                group = Group.restored(group_id, self._limits, kept.metadata, self.now_ms())
                self.run(group, group.tick(self.now_ms()))

    def find(self, group_id: str) -> Group | None:
        """The group with this id, if there is one. An idle group is built from the store. It is held once it
        has run and is no longer idle.
        """
        group = self.groups.get(group_id)
        if group is not None:
            return group
        kept = self._store.kept_group(group_id)
        if kept is None or self._store.is_being_deleted(group_id):
            return None
        return Group.restored(group_id, self._limits, kept.metadata, self.now_ms())

    def find_or_make(self, group_id: str) -> Group:
        """The group with this id, or a new one."""
        return self.find(group_id) or Group(group_id, self._limits)

    async def answer(
        self, group: Group, request: Callable[[int], list[Effect]], when_gone: WhenGone | None = None
    ) -> Any:
        """Give a group a request, built with a new ticket, and wait for the answer. Raises GroupsClosed."""
        self._last_ticket += 1
        ticket = self._last_ticket
        if when_gone is not None:
            when_gone(lambda: self._abandon(group, ticket))
        waiting = self._waiting[ticket] = asyncio.get_running_loop().create_future()
        try:
            self.run(group, request(ticket))
            return await waiting
        finally:
            del self._waiting[ticket]

    def run(self, group: Group, effects: Iterable[Effect]) -> None:
        """Carry out what a group decided. Hold the group if it is not idle, otherwise let it go."""
        for effect in effects:
            match effect:
                case AnswerJoin(ticket, answer) | AnswerSync(ticket, answer):
                    self._resolve(ticket, answer)
                    if isinstance(answer, JoinAnswer) and answer.members and not answer.skip_assignment:
                        # The leader's answer: each generation has one.
                        log.debug("%s", new_generation(group.group_id, answer))
                case WakeAt(at_ms):
                    self._set_timer(group, at_ms)
                case StoreGroup():
                    self._store_group(group, effect)
        if not group.is_idle:
            self._hold(group)
            self._count(group.group_id, group.held_bytes)
        elif self.groups.get(group.group_id, group) is group:
            self._let_go(group.group_id)

    def _hold(self, group: Group) -> None:
        self.held.groups += group.group_id not in self.groups
        self.groups[group.group_id] = group

    def _let_go(self, group_id: str) -> None:
        if self.groups.pop(group_id, None) is not None:
            self.held.groups -= 1
            log.debug("group %r has no members any more", group_id)
        self._cancel_timer(group_id)
        self._count(group_id, 0)

    def _count(self, group_id: str, held_bytes: int) -> None:
        self.held.bytes += held_bytes - self._bytes.pop(group_id, 0)
        if held_bytes:
            self._bytes[group_id] = held_bytes

    def _store_group(self, group: Group, effect: StoreGroup) -> None:
        def done(error: ErrorCode) -> None:
            if not self.is_closed:
                self.run(group, group.stored(effect.number, error, self.now_ms()))

        try:
            storing = self._store.store_group(group.group_id, effect.metadata)
        except FaircopyError as error:
            log.warning("group %r could not be stored, and is stored again later: %s", group.group_id, error)
            asyncio.get_running_loop().call_soon(done, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            storing.add_done_callback(lambda _storing: done(ErrorCode.NONE))

    def _abandon(self, group: Group, ticket: int) -> None:
        if not self.is_closed and self.groups.get(group.group_id) is group:
            self.run(group, group.abandon(ticket, self.now_ms()))
            # Nobody reads this answer, but whatever waits for it holds the whole request in memory.
            self._resolve(ticket, JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, ""))

    def close(self) -> None:
        """Stop all timers, and end all waits: `answer` raises GroupsClosed."""
        self.is_closed = True
        for group_id in list(self.groups):
            self._let_go(group_id)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(GroupsClosed("another coordinator has the group now"))
                waiting.exception()  # mark it as retrieved, since nobody may be waiting any more

    def _resolve(self, ticket: int, answer: object) -> None:
        # Whoever asked may be gone.
        waiting = self._waiting.get(ticket)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def _set_timer(self, group: Group, at_ms: int) -> None:
        self._cancel_timer(group.group_id)
        delay_s = max(at_ms - self.now_ms(), 0) / 1000
        self._timers[group.group_id] = self._call_later(delay_s, lambda: self._wake(group))

    def _cancel_timer(self, group_id: str) -> None:
        timer = self._timers.pop(group_id, None)
        if timer is not None:
            timer.cancel()

    def _wake(self, group: Group) -> None:
        self._timers.pop(group.group_id, None)
        self.run(group, group.tick(self.now_ms()))


def new_generation(group_id: str, answer: JoinAnswer) -> str:
    """The log message for a completed rebalance."""
    return (
        f"group {group_id!r} has generation {answer.generation}: {len(answer.members)} member(s), "
        f"{answer.protocol_name!r}, led by {answer.leader_id!r}"
    )
