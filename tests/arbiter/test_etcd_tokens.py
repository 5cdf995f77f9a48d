"""Members of etcd that refuse tokens, or whose certificates are refused: what is sent again, and where."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import urlsplit

import aiohttp
import pytest

from faircopy.arbiter.backend import Attempt, StoreRefused, StoreUnavailable, Unanswered
from faircopy.arbiter.etcd_access import EtcdAccess, EtcdRefused
from faircopy.arbiter.etcd_backend import EtcdBackend
from faircopy.arbiter.etcd_client import EtcdClient, ensure_done
from tests.arbiter.test_session import in_virtual_time

INVALID = (401, {"code": 16, "message": "etcdserver: invalid auth token"})
DENIED = (403, {"error": {"code": 7, "message": "etcdserver: permission denied"}})
FULL = (429, {"code": 8, "message": "etcdserver: mvcc: database space exceeded"})
WITHOUT_USERS = (400, {"code": 9, "message": "etcdserver: authentication is not enabled"})
DONE = (200, {"header": {"revision": "7"}, "succeeded": True})
Said = tuple[int, dict[str, Any]]


class Answer:
    """An answer of etcd's."""

    def __init__(self, said: Said) -> None:
        self.status, self._body = said

    async def read(self) -> bytes:
        return json.dumps(self._body).encode()

    async def text(self) -> str:
        return json.dumps(self._body)


class Members:
    """Members of etcd in place of HTTP. `answer` says what each says to a request, or raises it.

    `asked` has the member, the end of the path and the token of each request.
    """

    def __init__(self, answer: Callable[[str, str, str], Said]) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self._answer = answer

    @asynccontextmanager
    async def post(
        self, url: str, json: Any, timeout: aiohttp.ClientTimeout, headers: dict[str, str]
    ) -> AsyncIterator[Any]:
        """The response of the member that the address names."""
        member, path = str(urlsplit(url).hostname), url.rpartition("/")[2]
        self.asked.append((member, path, headers.get("Authorization", "")))
        yield Answer(self._answer(*self.asked[-1]))

    async def close(self) -> None:
        """Nothing is open."""


def client_of(members: Members, access: EtcdAccess, addresses: str = "a:1 b:1") -> EtcdClient:
    client = EtcdClient(addresses.split(), access)
    client._http = cast(Any, members)
    return client


def backend_of(members: Members, access: EtcdAccess) -> EtcdBackend:
    backend = EtcdBackend(["a:1"], "set/", access)
    backend._client = client_of(members, access, "a:1")
    return backend


def somebody() -> EtcdAccess:
    return EtcdAccess(user="somebody", password="secret")


class Tokens:
    """Gives tokens t1, t2, ...; only those in `valid` are taken."""

    def __init__(self, *valid: str) -> None:
        self._valid = valid
        self._given = 0

    def __call__(self, _member: str, path: str, token: str) -> Said:
        if path == "authenticate":
            self._given += 1
            return 200, {"token": f"t{self._given}"}
        return DONE if token in self._valid else INVALID


def test_what_is_refused_for_its_token_is_sent_once_more() -> None:
    async def main() -> None:
        members = Members(Tokens("t2"))
        client = client_of(members, somebody())
        assert await client.ask("kv/txn", {}) == DONE[1]
        assert await client.ask("kv/range", {}) == DONE[1]
        assert members.asked == [
            ("a", "authenticate", ""),
            ("a", "txn", "t1"),
            ("a", "authenticate", ""),
            ("a", "txn", "t2"),
            ("a", "range", "t2"),
        ]

    in_virtual_time(main)


def test_a_member_that_takes_none_of_its_tokens_is_left_and_nothing_was_written() -> None:
    async def main() -> None:
        members = Members(Tokens())
        client = client_of(members, somebody())
        with pytest.raises(StoreUnavailable):
            await client.ask("kv/txn", {})
        assert [path for _, path, _ in members.asked] == ["authenticate", "txn"] * 2
        with pytest.raises(StoreUnavailable):
            await client.ask("kv/txn", {})
        assert members.asked[-1][0] == "b"

    in_virtual_time(main)


def test_a_token_that_others_have_renewed_meanwhile_is_not_thrown_away() -> None:
    access = somebody()
    access.token = "new"
    assert access.is_stale("old", "etcdserver: invalid auth token")
    assert access.token == "new"
    assert access.is_stale("new", "etcdserver: revision of auth store is old")
    assert access.token is None
    assert not access.is_stale("new", "etcdserver: permission denied")
    assert not EtcdAccess().is_stale("", "etcdserver: user name is empty")


def test_a_write_is_known_not_to_have_landed_if_only_the_password_was_sent() -> None:
    async def main() -> None:
        def hang_up(_member: str, path: str, _token: str) -> Said:
            raise aiohttp.ServerDisconnectedError

        with pytest.raises(StoreUnavailable):
            await client_of(Members(hang_up), somebody()).ask("kv/txn", {})
        with pytest.raises(Unanswered):
            await client_of(Members(hang_up), EtcdAccess()).ask("kv/txn", {})

    in_virtual_time(main)


def test_where_there_are_no_users_no_token_is_asked_for_again() -> None:
    async def main() -> None:
        members = Members(lambda _, path, __: WITHOUT_USERS if path == "authenticate" else DONE)
        client = client_of(members, somebody())
        for _ in range(2):
            await client.ask("kv/range", {})
        assert [path for _, path, _ in members.asked] == ["authenticate", "range", "range"]

    in_virtual_time(main)


def mistrust(*members: str) -> Callable[[str, str, str], Said]:
    """The certificates of these members are not trusted."""

    def answer(member: str, _path: str, _token: str) -> Said:
        if member not in members:
            return DONE
        trouble = ssl.SSLCertVerificationError(1, "certificate verify failed")
        trouble.verify_message = "expired"
        raise aiohttp.ClientConnectorCertificateError(cast(Any, None), trouble) from trouble

    return answer


def test_only_if_no_member_is_trusted_the_store_refuses() -> None:
    async def main() -> None:
        client = client_of(Members(mistrust("a")), EtcdAccess())
        with pytest.raises(
            StoreUnavailable, match=r"etcd at a:1: its certificate is not trusted \(expired\)"
        ):
            await client.ask("kv/range", {})
        assert await client.ask("kv/range", {}) == DONE[1]
        assert await client.ask_any("lease/keepalive", {}) == DONE[1]
        client = client_of(Members(mistrust("a", "b")), EtcdAccess())
        with pytest.raises(StoreUnavailable):
            await client.ask("kv/range", {})
        with pytest.raises(StoreRefused, match=r"etcd at b:1: its certificate is not trusted"):
            await client.ask("kv/range", {})

    in_virtual_time(main)


def test_a_member_that_was_trusted_since_is_not_one_of_those_that_are_not() -> None:
    async def main() -> None:
        untrusted = ["a"]
        client = client_of(Members(lambda *asked: mistrust(*untrusted)(*asked)), EtcdAccess())
        with pytest.raises(StoreUnavailable):
            await client.ask("kv/range", {})
        untrusted[:] = ["b"]
        with pytest.raises(StoreRefused):
            await client.ask("kv/range", {})
        assert await client.ask("kv/range", {}) == DONE[1]
        await asyncio.gather(client._post("b:1", "kv/range", {}, ""), return_exceptions=True)
        with pytest.raises(StoreUnavailable):
            await client._ask("b:1", "kv/range", {})

    in_virtual_time(main)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "refuses this broker's certificate"),
        ("WRONG_VERSION_NUMBER", "does not speak TLS"),
    ],
)
def test_trouble_with_tls_is_no_write_whose_outcome_is_unknown(reason: str, told: str) -> None:
    async def main() -> None:
        def answer(_member: str, _path: str, _token: str) -> Said:
            trouble = ssl.SSLError(1, reason)
            trouble.reason = reason
            raise aiohttp.ClientOSError(1, reason) from trouble

        client = client_of(Members(answer), EtcdAccess())
        with pytest.raises(StoreUnavailable, match=told):
            await client.ask("kv/txn", {})

    in_virtual_time(main)


def test_who_is_refused_from_the_beginning_is_told_and_who_could_write_tries_again() -> None:
    async def main() -> None:
        said: list[Said] = [DENIED]
        backend = backend_of(Members(lambda *_: said[0]), EtcdAccess())
        write: Callable[[], Awaitable[object]] = lambda: backend.attempt(Attempt({}, {"a": b""}))  # noqa: E731
        refused = [backend.snapshot, lambda: backend.read("a"), lambda: backend.grant(5), write]
        unavailable = [lambda: backend.keep_alive(1), lambda: backend.revoke(1)]
        await expect(StoreRefused, refused)
        await expect(StoreUnavailable, unavailable)
        said[0] = DONE
        assert await backend.attempt(Attempt({}, {"a": b""})) == 7
        said[0] = DENIED
        await expect(StoreUnavailable, [*refused, *unavailable])

    in_virtual_time(main)


async def expect(kind: type[Exception], calls: Any) -> None:
    """Each call raises it."""
    for call in calls:
        with pytest.raises(kind):
            await call()


@pytest.mark.parametrize("said", [FULL, (FULL[0], {"error": FULL[1]})])
def test_a_full_etcd_refuses_nobody_for_good(said: Said) -> None:
    async def main() -> None:
        backend = backend_of(Members(lambda *_: said), EtcdAccess())
        await expect(
            StoreUnavailable,
            [lambda: backend.grant(5), lambda: backend.attempt(Attempt({}, {"a": b""}))],
        )

    in_virtual_time(main)


def test_a_request_that_is_wrong_is_an_error_of_ours() -> None:
    async def main() -> None:
        wrong = (400, {"code": 3, "message": "etcdserver: duplicate key given in txn request"})
        backend = backend_of(Members(lambda *_: wrong), EtcdAccess())
        with pytest.raises(EtcdRefused, match="duplicate key"):
            await backend.attempt(Attempt({}, {"a": b""}))

    in_virtual_time(main)


def test_a_password_is_not_part_of_what_is_printed() -> None:
    access = somebody()
    access.token = "token.1"
    assert "secret" not in repr(access)
    assert "token.1" not in repr(access)


def test_an_answer_that_is_no_json_is_told_as_it_is() -> None:
    async def main() -> None:
        class Plain(Answer):
            async def text(self) -> str:
                return "no such page\n"

        with pytest.raises(EtcdRefused, match=r"etcd refuses: no such page$"):
            await ensure_done(cast(Any, Plain((404, {}))))

    in_virtual_time(main)


def test_an_access_is_shared() -> None:
    """Its clients need one token, not two."""

    async def main() -> None:
        access, members = somebody(), Members(Tokens("t1"))
        await asyncio.gather(client_of(members, access).ask("kv/range", {}))
        await client_of(members, access).ask("kv/range", {})
        assert [path for _, path, _ in members.asked] == ["authenticate", "range", "range"]

    in_virtual_time(main)
