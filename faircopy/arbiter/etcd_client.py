"""Requests to etcd, by its JSON gateway (etcd's documentation, "gRPC gateway"). Each goes to one member,
once; if it fails, the next request goes to the next member.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp

from faircopy.arbiter.backend import StoreUnavailable, Unanswered
from faircopy.errors import FaircopyError

REQUEST_SECONDS = 1.0
"""Longer than an answer takes. Without a leader, etcd may take 7 s to say so (measured with 3.6)."""
CONNECT_SECONDS = 0.5
NEXT_SECONDS = 0.2
"""After so long, another member is asked as well, if it may be."""
SILENT_SECONDS, HANGS_SECONDS = 1.0, 3.0
"""A watch that is silent is asked for its progress; one that does not answer that either hangs."""
MESSAGE_BYTES_MAX = 64 << 20
WEBSOCKET = aiohttp.ClientWSTimeout(ws_close=CONNECT_SECONDS)

Json = dict[str, Any]


class EtcdRefused(FaircopyError):
    """etcd has understood a request and does not do it. `status` is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"etcd refuses: {message}")
        self.status = status


class EtcdClient:
    """A client of the members at these addresses (HOST:PORT)."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = list(addresses)
        self._http: aiohttp.ClientSession | None = None

    async def ask(self, path: str, body: Json) -> Json:
        """The answer to a request. Raises EtcdRefused, StoreUnavailable (nothing was sent), Unanswered."""
        return await self._ask(self._addresses[0], path, body)

    async def ask_any(self, path: str, body: Json) -> Json:
        """The first answer of any member, each of which is asked a moment after the one before it. For what
        may be done several times. Raises EtcdRefused, and StoreUnavailable if none answers.

        While etcd elects a leader, its members keep some requests for seconds, and answer others at once.
        """
        asked: list[asyncio.Future[Json]] = []
        addresses = self._addresses[:]
        try:
            for address in addresses:
                asked.append(asyncio.ensure_future(self._ask(address, path, body)))
                patience = None if len(asked) == len(addresses) else NEXT_SECONDS
                if (answer := await first_answer(asked, patience)) is not None:
                    return answer
            raise StoreUnavailable(f"no member of etcd answers: {asked[-1].exception()}")
        finally:
            for each in asked:
                each.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    async def _ask(self, address: str, path: str, body: Json) -> Json:
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS, sock_connect=CONNECT_SECONDS)
        try:
            url = f"http://{address}/v3/{path}"
            async with self._session().post(url, json=body, timeout=timeout) as response:
                await ensure_done(response)
                answer: Json = json.loads(await response.read())
                return answer
        except CAUGHT as error:
            raise self._failed(address, error) from error
        except asyncio.CancelledError:  # who has asked does not wait any longer: the member may hang
            self._leave(address)
            raise

    async def watch(self, request: Json) -> AsyncIterator[Json]:
        """What a watch tells, without end; it is asked for its progress when it has been silent. Raises
        StoreUnavailable, also if it hangs: its member may be stopped, or cut off from the others.
        """
        address = self._addresses[0]
        try:
            async with self._session().ws_connect(
                f"ws://{address}/v3/watch", timeout=WEBSOCKET, max_msg_size=MESSAGE_BYTES_MAX
            ) as socket:
                await socket.send_json({"create_request": request})
                silent_seconds = 0.0
                while silent_seconds < HANGS_SECONDS:
                    try:
                        answer = await socket.receive_json(timeout=SILENT_SECONDS)
                    except TimeoutError:
                        silent_seconds += SILENT_SECONDS
                        await socket.send_json({"progress_request": {}})
                        continue
                    silent_seconds = 0.0
                    if "error" in answer:
                        raise Unanswered(f"etcd ends a watch: {answer['error']}")
                    yield answer["result"]
                raise Unanswered("a watch hangs")
        except (*CAUGHT, TypeError) as error:
            self._leave(address)
            raise StoreUnavailable(f"the watch at etcd {address} has ended: {error}") from error

    def _session(self) -> aiohttp.ClientSession:
        if self._http is None:
            self._http = aiohttp.ClientSession()
        return self._http

    def _failed(self, address: str, error: Exception) -> FaircopyError:
        """What to raise; the next request goes elsewhere."""
        self._leave(address)
        if isinstance(error, Unanswered):
            return error
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            return StoreUnavailable(f"etcd at {address} can't be reached: {error}")
        return Unanswered(f"etcd at {address} does not answer: {error or type(error).__name__}")

    def _leave(self, address: str) -> None:
        """Ask this member last from now on, if it was to be asked first."""
        if self._addresses[0] == address:
            self._addresses.append(self._addresses.pop(0))

    async def close(self) -> None:
        """Close all connections."""
        if self._http is not None:
            await self._http.close()


CAUGHT = (aiohttp.ClientError, TimeoutError, ValueError, Unanswered)


async def first_answer(asked: Sequence[asyncio.Future[Json]], seconds: float | None) -> Json | None:
    """The first answer to one of these requests; None if all have failed, or none has one by then. Raises
    EtcdRefused.
    """
    waiting = set(asked)
    while waiting:
        done, waiting = await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            if not isinstance(each.exception(), Unanswered | StoreUnavailable):
                return each.result()
        if not done:
            break
    return None


async def ensure_done(response: aiohttp.ClientResponse) -> None:
    """Raise EtcdRefused, or Unanswered if etcd itself does not know what came of a request."""
    if response.status == 200:
        return
    text = await response.text()
    if response.status >= 500:
        raise Unanswered(f"etcd does not know the outcome: {text}")
    raise EtcdRefused(response.status, text)
