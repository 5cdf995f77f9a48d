"""The broker's side of the publisher: starts its process, sends it requests, and starts it again when it has
died.

Nothing here imports Arrow: its memory belongs to the process, which ends when there has been nothing to do
for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from faircopy.errors import FaircopyError
from faircopy.publish.layout import NO_COLUMNS, Layout
from faircopy.publish.offsets import Held, held_from_json
from faircopy.publish.requests import (
    Drop,
    Open,
    Publish,
    Published,
    Request,
    RequestError,
    Tidied,
    Tidy,
    format_request,
    parse_reply,
)

_REPLY_BYTES_AT_MOST = 64 * 1024 * 1024
_SECONDS_TO_END = 10.0
# -P: nothing is imported from the directory that the broker was started in.
COMMAND = (sys.executable, "-P", "-m", "faircopy.publish")

_Reply = tuple[str, dict[str, Any]]  # verb and body


class PublishError(FaircopyError):
    """The publisher did not carry out a request.

    With `retry`, the same request may succeed later. It may also have been carried out already; repeating it
    does no harm. Without `retry`, somebody has to look at the table.
    """

    def __init__(self, message: str, *, retry: bool) -> None:
        super().__init__(message)
        self.retry = retry


class Publisher(Protocol):
    """Publishes tables. All methods raise PublishError. Requests are carried out in their order."""

    async def open_table(self, table: str, directory: str, layout: Layout = NO_COLUMNS) -> Held:
        """Make the table in `directory` (absolute) if need be, give it columns, and tell what it holds."""

    async def publish(self, publication: Publish) -> Published:
        """Publish the parts of a cut that the table does not have yet, all or nothing."""

    async def tidy(self, request: Tidy) -> Tidied:
        """Drop the rows that are not kept, and delete files whose grace is over."""

    async def drop_table(self, table: str, directory: str) -> None:
        """Delete the table, if it is there."""

    async def stop(self) -> None:
        """Finish all requests, and end."""

    async def kill(self) -> None:
        """End at once, whatever is half done. When this returns, nothing is written any more."""


class PublisherProcess:
    """The publisher, as a process that runs while it is needed. All methods raise PublishError.

    For one event loop. Requests are carried out in the order in which they were made.
    """

    def __init__(
        self, now_ms: Callable[[], int], *, idle_seconds: float = 60.0, command: Sequence[str] = COMMAND
    ) -> None:
        """`now_ms` is the steady clock. After `idle_seconds` without a request the process is ended; the next
        request starts another one.
        """
        self._now_ms = now_ms
        self._idle_seconds = idle_seconds
        self._command = command
        self._starting = asyncio.Lock()
        self._is_killed = False
        self._running: _Running | None = None
        self._idle: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int | None:
        """The process id, or None while there is no process."""
        return self._running.process.pid if self._running else None

    async def open_table(self, table: str, directory: str, layout: Layout = NO_COLUMNS) -> Held:
        """Make the table in `directory` (absolute) if need be, give it columns, and tell what it holds."""
        body = await self._ask(Open(table, directory, layout), "opened")
        return held_from_json(body)

    async def publish(self, publication: Publish) -> Published:
        """Publish the parts of a cut that the table does not have yet, all or nothing."""
        return Published(**await self._ask(publication, "published"))

    async def tidy(self, request: Tidy) -> Tidied:
        """Drop the rows that are not kept, and delete files whose grace is over."""
        return Tidied(**await self._ask(request, "tidied"))

    async def drop_table(self, table: str, directory: str) -> None:
        """Delete the table, if it is there."""
        await self._ask(Drop(table, directory), "dropped")

    async def stop(self) -> None:
        """End the process when it has finished all requests, or after some seconds in any case."""
        self._stay()
        async with self._starting:
            if self._running:
                await self._running.end()
                self._running = None

    async def kill(self) -> None:
        """Kill the process, and wait until it has ended. No other one is started."""
        self._stay()
        async with self._starting:
            self._is_killed = True
            if self._running:
                await self._running.kill()
                self._running = None

    async def _ask(self, request: Request, expected: str) -> dict[str, Any]:
        self._stay()
        running = await self._ensure_running()
        try:
            verb, body = await running.ask(request, self._now_ms())
        finally:
            if not running.is_busy:
                self._leave_when_idle(running)
        if verb == "failed":
            raise PublishError(str(body.get("message")), retry=bool(body.get("retry")))
        if verb != expected:
            raise PublishError(f"the publisher answered {verb!r} where {expected!r} was due", retry=False)
        return body

    async def _ensure_running(self) -> _Running:
        async with self._starting:
            if self._is_killed:
                raise PublishError("the publisher was killed, since the broker gives up", retry=False)
            if self._running is None or not self._running.takes_requests:
                if self._running:
                    await self._running.end()  # the tables' locks go with it
                self._running = await _start(self._command)
            return self._running

    def _stay(self) -> None:
        if self._idle:
            self._idle.cancel()

    def _leave_when_idle(self, running: _Running) -> None:
        self._stay()
        self._idle = asyncio.get_running_loop().call_later(self._idle_seconds, running.close)


class _Running:
    """One process, and the callers that wait for its replies, by the ids of their requests."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._waiting: dict[int, asyncio.Future[_Reply]] = {}
        self._last_id = 0
        self._closed = False
        self._reading = asyncio.create_task(self._read_replies())

    @property
    def takes_requests(self) -> bool:
        return not self._closed and not self._reading.done()

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting)

    async def ask(self, request: Request, now_ms: int) -> _Reply:
        self._last_id += 1
        reply: asyncio.Future[_Reply] = asyncio.get_running_loop().create_future()
        self._waiting[self._last_id] = reply
        assert self.process.stdin
        # If the process has died, the reader notices, and fails the reply.
        with contextlib.suppress(ConnectionError):
            self.process.stdin.write(format_request(self._last_id, now_ms, request))
            await self.process.stdin.drain()
        return await reply

    def close(self) -> None:
        """Let the process end when it has answered all requests."""
        assert self.process.stdin
        self._closed = True
        self.process.stdin.close()

    async def end(self) -> None:
        """Wait until the process has ended, but not for long."""
        self.close()
        try:
            await asyncio.wait_for(asyncio.shield(self._reading), _SECONDS_TO_END)
        except TimeoutError:
            self._kill()
        await self._reading
        await self.process.wait()

    async def kill(self) -> None:
        """End the process at once, and wait until it has ended."""
        self._closed = True
        self._kill()
        await self.process.wait()
        await self._reading

    async def _read_replies(self) -> None:
        assert self.process.stdout
        try:
            while line := await self.process.stdout.readline():
                number, verb, body = parse_reply(line)
                waiter = self._waiting.pop(number, None)
                if waiter and not waiter.done():
                    waiter.set_result((verb, body))
        except (RequestError, ValueError):  # its output is not a reply, or too long
            self._kill()
        finally:
            self._fail_all()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    def _fail_all(self) -> None:
        for waiter in self._waiting.values():
            if not waiter.done():
                message = f"the publisher (process {self.process.pid}) has ended before its answer"
                waiter.set_exception(PublishError(message, retry=True))
        self._waiting.clear()


async def _start(command: Sequence[str]) -> _Running:
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_REPLY_BYTES_AT_MOST,
        )
    except OSError as error:
        raise PublishError(f"starting the publisher: {error}", retry=True) from error
    return _Running(process)
