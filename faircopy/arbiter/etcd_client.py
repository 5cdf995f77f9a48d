"""Requests to etcd, by its JSON gateway (etcd's documentation, "gRPC gateway"). Each goes to one member,
once; if it fails, the next request goes to the next member. Only what is refused for its token is sent again,
with a new one: etcd looks at tokens first.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp

from faircopy.arbiter.backend import StoreRefused, StoreUnavailable, Unanswered
from faircopy.arbiter.etcd_access import (
    NO_TOKEN,
    TLS_ADVICE,
    WITHOUT_USERS,
    EtcdAccess,
    EtcdRefused,
    certificate_trouble,
)
from faircopy.errors import FaircopyError

REQUEST_SECONDS = 1.0
"""Longer than an answer takes. Without a leader, etcd may take 7 s to say so (measured with 3.6)."""
CONNECT_SECONDS = 0.5
AUTHENTICATE_SECONDS = 3.0
"""A hash of the password takes as long as etcd is told that it is to take."""
NEXT_SECONDS = 0.2
"""After so long, another member is asked as well, if it may be."""
SILENT_SECONDS, HANGS_SECONDS = 1.0, 3.0
"""A watch that is silent is asked for its progress; one that does not answer that either hangs."""
TOKENS_TRIED = 2
"""The one at hand, which etcd may have forgotten, and a new one."""
MESSAGE_BYTES_MAX = 64 << 20
WEBSOCKET = aiohttp.ClientWSTimeout(ws_close=CONNECT_SECONDS)

UNKNOWN = 2
"""gRPC's code of errors that have no other."""

Json = dict[str, Any]


class EtcdClient:
    """A client of the members at these addresses (HOST:PORT)."""

    def __init__(self, addresses: Sequence[str], access: EtcdAccess | None = None) -> None:
        self._addresses = list(addresses)
        self._access = access or EtcdAccess()
        self._untrusted: set[str] = set()
        self._http: aiohttp.ClientSession | None = None

    async def ask(self, path: str, body: Json) -> Json:
        """The answer to a request. Raises EtcdRefused, StoreUnavailable (nothing was sent), Unanswered, and
        StoreRefused if there is no member with whose certificates all is well.
        """
        return await self._ask(self._addresses[0], path, body)

    async def ask_any(self, path: str, body: Json) -> Json:
        """The first answer of any member, each of which is asked a moment after the one before it. For what
        may be done several times. Raises EtcdRefused, StoreRefused, and StoreUnavailable if none answers.

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
        for _ in range(TOKENS_TRIED):
            token = await self._token(address)
            try:
                return await self._post(address, path, body, token)
            except EtcdRefused as error:
                if not self._access.is_stale(token, error.message):
                    raise
                refused = error
        self._leave(address)
        raise StoreUnavailable(f"etcd at {address} does not know a token of its own: {refused}") from refused

    async def _token(self, address: str) -> str:
        """The token to show; a new one if there is none. Raises EtcdRefused, StoreUnavailable."""
        if self._access.token is None:
            self._access.token = await self._authenticate(address)
        return self._access.token

    async def _authenticate(self, address: str) -> str:
        body = {"name": self._access.user, "password": self._access.password}
        try:
            answer = await self._post(address, "auth/authenticate", body, NO_TOKEN, AUTHENTICATE_SECONDS)
        except Unanswered as error:
            raise StoreUnavailable(str(error)) from error
        except EtcdRefused as error:
            if WITHOUT_USERS in error.message:
                return NO_TOKEN
            raise
        return str(answer["token"])

    async def _post(
        self, address: str, path: str, body: Json, token: str, seconds: float = REQUEST_SECONDS
    ) -> Json:
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS)
        headers = {"Authorization": token} if token else {}
        url = self._access.url("http", address, path)
        try:
            async with self._session().post(url, json=body, timeout=timeout, headers=headers) as response:
                await ensure_done(response)
                answer: Json = json.loads(await response.read())
                self._untrusted.discard(address)
                return answer
        except CAUGHT as error:
            raise self._failed(address, error) from error
        except asyncio.CancelledError:  # who has asked does not wait any longer: the member may hang
            self._leave(address)
            raise

    async def watch(self, request: Json) -> AsyncIterator[Json]:
        """What a watch tells, without end; it is asked for its progress when it has been silent. Raises
        StoreUnavailable, also if it hangs: its member may be stopped, or cut off from the others. Raises
        EtcdRefused, StoreRefused if there is no token to be had.
        """
        address = self._addresses[0]
        token = await self._token(address)
        try:
            async with self._session().ws_connect(
                self._access.url("ws", address, "watch"),
                protocols=("Bearer", token) if token else (),  # so etcd's gateway takes it
                timeout=WEBSOCKET,
                max_msg_size=MESSAGE_BYTES_MAX,
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
                    if answer["result"].get("canceled"):
                        self._access.is_stale(token, answer["result"].get("cancel_reason", ""))
                    yield answer["result"]
                raise Unanswered("a watch hangs")
        except (*CAUGHT, TypeError) as error:
            self._leave(address)
            raise StoreUnavailable(f"the watch at etcd {address} has ended: {error}") from error

    def _session(self) -> aiohttp.ClientSession:
        if self._http is None:
            connector = aiohttp.TCPConnector(ssl=self._access.tls or True)
            self._http = aiohttp.ClientSession(connector=connector)
        return self._http

    def _failed(self, address: str, error: Exception) -> FaircopyError:
        """What to raise; the next request goes elsewhere."""
        self._leave(address)
        if isinstance(error, Unanswered):
            return error
        if (trouble := certificate_trouble(error)) is not None:
            return self._mistrusted(address, trouble)
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            what = f"{reason_of(error)}{self._access.hint(error)}"
            return StoreUnavailable(f"etcd at {address} can't be reached: {what}")
        what = f"{reason_of(error)}{self._access.hint(error)}"
        return Unanswered(f"etcd at {address} does not answer: {what}")

    def _mistrusted(self, address: str, trouble: str) -> FaircopyError:
        """What to raise for a certificate: another member may have a better one."""
        self._untrusted.add(address)
        told = f"no connection with etcd at {address}: {trouble}. {TLS_ADVICE}"
        return StoreRefused(told) if self._untrusted >= {*self._addresses} else StoreUnavailable(told)

    def _leave(self, address: str) -> None:
        """Ask this member last from now on, if it was to be asked first."""
        if self._addresses[0] == address:
            self._addresses.append(self._addresses.pop(0))

    async def close(self) -> None:
        """Close all connections."""
        if self._http is not None:
            await self._http.close()


CAUGHT = (aiohttp.ClientError, TimeoutError, ValueError, Unanswered)


def reason_of(error: Exception) -> str:
    """What went wrong, for people. aiohttp speaks of TLS also where there is none; timeouts say nothing."""
    cause = getattr(error, "os_error", error)
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__


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
    raise refusal(response.status, text)


def refusal(status: int, text: str) -> EtcdRefused:
    """What an answer says that is none: JSON, with or without `error` around it, or a text."""
    try:
        said = json.loads(text)
        said = said["error"] if isinstance(said.get("error"), dict) else said
        return EtcdRefused(status, int(said["code"]), str(said["message"]))
    except (ValueError, AttributeError, KeyError, TypeError):
        return EtcdRefused(status, UNKNOWN, text.strip())
