"""The groups of a broker, with their timers and the requests that wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from faircopy.broker.groups.members import AnswerJoin, AnswerSync, Effect, GroupLimits, WakeAt
from faircopy.broker.groups.membership import Group


class Timer(Protocol):
    """What `call_later` returns."""

    def cancel(self) -> None: ...


CallLater = Callable[[float, Callable[[], None]], Timer]
"""`call_later(delay in seconds, function)`, as that of an asyncio loop."""

NowMs = Callable[[], int]
"""Monotonic milliseconds."""


class GroupRegistry:
    """Holds the groups that are not idle, and carries out their effects."""

    def __init__(self, limits: GroupLimits, call_later: CallLater, now_ms: NowMs) -> None:
        self.groups: dict[str, Group] = {}
        self.now_ms = now_ms
        self._limits = limits
        self._call_later = call_later
        self._timers: dict[str, Timer] = {}
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._last_ticket = 0

    def find_or_make(self, group_id: str) -> Group:
        """The group of this id. One that is made here is kept once it is run and not idle."""
        return self.groups.get(group_id) or Group(group_id, self._limits)

    async def answer(self, group: Group, request: Callable[[int], list[Effect]]) -> Any:
        """Give a request, made of the ticket it gets, to a group, and wait for its answer."""
        self._last_ticket += 1
        ticket = self._last_ticket
        waiting = self._waiting[ticket] = asyncio.get_running_loop().create_future()
        try:
            self.run(group, request(ticket))
            return await waiting
        finally:
            del self._waiting[ticket]

    def run(self, group: Group, effects: Iterable[Effect]) -> None:
        """Carry out what a group decided; keep it if it is not idle, else let it go."""
        for effect in effects:
            match effect:
                case AnswerJoin(ticket, answer) | AnswerSync(ticket, answer):
                    self._resolve(ticket, answer)
                case WakeAt(at_ms):
                    self._set_timer(group, at_ms)
        if group.is_idle:
            self.groups.pop(group.group_id, None)
            self._cancel_timer(group.group_id)
        else:
            self.groups[group.group_id] = group

    def close(self) -> None:
        """Stop all timers, and let nobody wait any longer."""
        for group_id in list(self._timers):
            self._cancel_timer(group_id)
        for waiting in self._waiting.values():
            waiting.cancel()

    def _resolve(self, ticket: int, answer: object) -> None:
        # Whoever asked may be gone: then there is nobody to tell.
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
