"""A client of the LMDB backend in a process of its own, since a process has an environment open only once.

    python -m tests.arbiter.backend_process DIRECTORY NAME

Calls come on stdin and results leave on stdout, pickled: both are this test's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import pickle
import struct
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from faircopy.arbiter.backend import Attempt, KeyChange, LeaseLeft, StoreSnapshot, StoreUnavailable
from faircopy.arbiter.lmdb_backend import LmdbBackend
from faircopy.storage.versioned_map import Versioned

LENGTH = struct.Struct(">I")
ROOT = Path(__file__).parents[2]


class BackendProcess:
    """A `Backend` whose calls are carried out in another process."""

    def __init__(self, directory: Path, name: str) -> None:
        self._arguments = (str(directory), name)
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._reading: asyncio.Task[None] | None = None

    async def _call(self, method: str, *arguments: object) -> Any:
        async with self._starting:
            if self._process is None:
                await self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        number = next(self._numbers)
        result = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._process.stdin.write(framed((number, method, arguments)))
        return await result

    async def _start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.arbiter.backend_process", *self._arguments,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, cwd=ROOT,
        )  # fmt: skip
        assert self._process.stdout is not None
        self._reading = asyncio.ensure_future(self._read(self._process.stdout))

    async def _read(self, stream: asyncio.StreamReader) -> None:
        try:
            await self._read_answers(stream)
        except asyncio.IncompleteReadError:
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(StoreUnavailable("the process has ended"))

    async def _read_answers(self, stream: asyncio.StreamReader) -> None:
        while True:
            number, result, error = await read_frame(stream)
            waiting = self._waiting.pop(number)
            if waiting.done():
                continue
            if error is None:
                waiting.set_result(result)
            else:
                waiting.set_exception(error)

    async def snapshot(self) -> StoreSnapshot:
        return await self._call("snapshot")  # type: ignore[no-any-return]

    async def changes(self, revision: int) -> AsyncIterator[Sequence[KeyChange]]:
        while True:
            events = await self._call("first_changes", revision)
            yield events
            revision = events[-1].revision

    async def read(self, key: str) -> Versioned | None:
        return await self._call("read", key)  # type: ignore[no-any-return]

    async def attempt(self, attempt: Attempt) -> int | None:
        return await self._call("attempt", attempt)  # type: ignore[no-any-return]

    async def grant(self, seconds: float) -> int:
        return await self._call("grant", seconds)  # type: ignore[no-any-return]

    async def keep_alive(self, lease: int) -> bool:
        return await self._call("keep_alive", lease)  # type: ignore[no-any-return]

    async def revoke(self, lease: int) -> None:
        await self._call("revoke", lease)

    async def lease_seconds_left(self, key: str) -> LeaseLeft | None:
        return await self._call("lease_seconds_left", key)  # type: ignore[no-any-return]

    def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        self._process.kill()

    async def close(self) -> None:
        if self._process is None or self._process.returncode is not None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        if self._reading is not None:
            await self._reading


def framed(what: object) -> bytes:
    """A frame on a pipe."""
    content = pickle.dumps(what)
    return LENGTH.pack(len(content)) + content


async def read_frame(stream: asyncio.StreamReader) -> Any:
    (length,) = LENGTH.unpack(await stream.readexactly(LENGTH.size))
    return pickle.loads(await stream.readexactly(length))


class Served(LmdbBackend):
    """The backend, with what can't be called from afar made into calls."""

    async def first_changes(self, revision: int) -> Sequence[KeyChange]:
        async with aclosing(self.changes(revision)) as changes:  # type: ignore[type-var]
            async for events in changes:
                return events
        raise AssertionError("changes never end")


async def serve(directory: Path, name: str) -> None:
    """Carry out calls until stdin ends."""
    loop = asyncio.get_running_loop()
    backend = Served(directory, name, loop)
    stream = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), sys.stdin)
    calls = set[asyncio.Task[None]]()

    async def carry_out(number: int, method: str, arguments: tuple[object, ...]) -> None:
        answer: tuple[int, object, Exception | None]
        try:
            answer = (number, await getattr(backend, method)(*arguments), None)
        except Exception as error:
            answer = (number, None, error)
        sys.stdout.buffer.write(framed(answer))
        sys.stdout.buffer.flush()

    with contextlib.suppress(asyncio.IncompleteReadError):
        while True:
            task = asyncio.ensure_future(carry_out(*await read_frame(stream)))
            calls.add(task)
            task.add_done_callback(calls.discard)
    for task in calls:
        task.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    await backend.close()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), sys.argv[2]))
