"""A transaction of one process, beside any number of others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType

from faircopy.client.member import Header, JointMember

GiveBack = Callable[[JointMember], Awaitable[None]]


class OpenTransaction:
    """Made by `Client.begin`. Use it as an async context manager, which commits, or aborts on an error; or
    call `commit` or `abort`.
    """

    def __init__(self, member: JointMember, give_back: GiveBack) -> None:
        self._member = member
        self._give_back = give_back
        self._is_over = False

    async def __aenter__(self) -> OpenTransaction:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_over:
            return
        if kind is None:
            await self.commit()
        else:
            await self.abort()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[Header] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """Send a record; see `JointMember.send`."""
        await self._member.send(
            topic, value, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
        )

    async def commit(self) -> None:
        """Commit. When this returns, it can't be lost. Raises RequestFailed, OutcomeUnknown."""
        self._is_over = True
        await self._member.end(commit=True)
        await self._give_back(self._member)

    async def abort(self) -> None:
        """Discard everything that was sent. Raises RequestFailed, OutcomeUnknown."""
        self._is_over = True
        await self._member.end(commit=False)
        await self._give_back(self._member)
