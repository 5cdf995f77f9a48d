"""Which member of etcd is asked, when some of them hang or can't be reached."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import urlsplit

import aiohttp
import pytest

from faircopy.arbiter.backend import StoreUnavailable, Unanswered
from faircopy.arbiter.etcd_backend import EtcdBackend
from faircopy.arbiter.etcd_client import NEXT_SECONDS, EtcdClient
from tests.arbiter.test_session import in_virtual_time

HANGS, IS_AWAY, ANSWERS = "hangs", "is away", "answers"


class ScriptedMembers:
    """Members of etcd, each in one of these states, in place of HTTP. `asked` are those that were asked."""

    def __init__(self, **states: str) -> None:
        self.asked: list[str] = []
        self._states = states

    @asynccontextmanager
    async def post(
        self, url: str, json: Any, timeout: aiohttp.ClientTimeout, headers: Any
    ) -> AsyncIterator[Any]:
        """The response of the member that the address names."""
        assert json == {}
        member = str(urlsplit(url).hostname)
        self.asked.append(member)
        if self._states[member] == IS_AWAY:
            raise aiohttp.ConnectionTimeoutError(f"nobody listens at {member}")
        if self._states[member] == HANGS:
            async with asyncio.timeout(timeout.total):
                await asyncio.Event().wait()
        yield Answer(member)


class Answer:
    """An answer that says whose it is."""

    status = 200

    def __init__(self, member: str) -> None:
        self._member = member

    async def read(self) -> bytes:
        return json.dumps({"by": self._member}).encode()


def client_of(members: ScriptedMembers) -> EtcdClient:
    client = EtcdClient(["a:1", "b:1", "c:1"])
    client._http = cast(Any, members)
    return client


def test_who_hangs_is_not_waited_for_if_another_may_be_asked_as_well() -> None:
    async def main() -> None:
        members = ScriptedMembers(a=HANGS, b=ANSWERS, c=ANSWERS)
        client, loop = client_of(members), asyncio.get_running_loop()
        began = loop.time()
        assert await client.ask_any("lease/keepalive", {}) == {"by": "b"}
        assert loop.time() - began < 2 * NEXT_SECONDS
        assert await client.ask("kv/range", {}) == {"by": "b"}
        assert members.asked == ["a", "b", "b"], "who hangs is asked last from then on"

    in_virtual_time(main)


def test_if_none_answers_the_store_is_unavailable() -> None:
    async def main() -> None:
        members = ScriptedMembers(a=HANGS, b=IS_AWAY, c=IS_AWAY)
        with pytest.raises(StoreUnavailable):
            await client_of(members).ask_any("lease/keepalive", {})
        assert members.asked == ["a", "b", "c"]

    in_virtual_time(main)


def test_who_reads_waits_for_no_member_that_is_away() -> None:
    async def main() -> None:
        backend = EtcdBackend(["a:1", "b:1", "c:1"], "x/")
        members = ScriptedMembers(a=IS_AWAY, b=HANGS, c=ANSWERS)
        backend._client._http = cast(Any, members)
        assert await backend._read("kv/range", {}) == {"by": "c"}

    in_virtual_time(main)


def test_why_no_member_answers_is_told() -> None:
    async def main() -> None:
        for state, told in ((IS_AWAY, "nobody listens at c"), (HANGS, "TimeoutError")):
            with pytest.raises(StoreUnavailable, match=told):
                await client_of(ScriptedMembers(a=state, b=state, c=state)).ask_any("kv/range", {})

    in_virtual_time(main)


def test_two_requests_that_fail_at_one_member_leave_that_one_alone() -> None:
    async def main() -> None:
        members = ScriptedMembers(a=HANGS, b=ANSWERS, c=ANSWERS)
        client = client_of(members)
        failed = await asyncio.gather(*(client.ask("kv/range", {}) for _ in range(2)), return_exceptions=True)
        assert [type(each) for each in failed] == [Unanswered] * 2
        assert await client.ask("kv/range", {}) == {"by": "b"}

    in_virtual_time(main)
