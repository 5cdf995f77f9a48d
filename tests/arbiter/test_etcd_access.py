"""An etcd that lets only some clients in, by TLS with certificates, and by users with passwords and roles."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from faircopy.arbiter.address import ArbiterOptions, parse_arbiter
from faircopy.arbiter.backend import Attempt, Backend, StoreRefused, StoreUnavailable
from faircopy.arbiter.backends import etcd_access, open_backend
from faircopy.arbiter.etcd_backend import EtcdBackend
from faircopy.arbiter.etcd_client import EtcdClient
from faircopy.arbiter.session import Session
from faircopy.settings.table import BadSetting
from tests.arbiter.backend_contract import LEASE_SECONDS, changes_until, uptime_ms
from tests.arbiter.certificates import Authority
from tests.arbiter.etcd import EtcdCluster, Guarded

SECONDS = 100.0
SET = "orders"
PREFIX = f"/faircopy/{SET}/".encode()
NUMBERS = itertools.count()
"""Of sessions: none has the name of another."""
PASSWORDS = {"root": "of root", "faircopy": "of faircopy", "reader": "of reader", "poor": "of poor"}


class Secured(NamedTuple):
    """An etcd with users. `faircopy` may read and write the keys of the set, `reader` may read them."""

    cluster: EtcdCluster
    authority: Authority
    options: ArbiterOptions

    def of(self, user: str, **changes: Any) -> ArbiterOptions:
        """The options of a broker that comes as this user, with a password file of its own."""
        file = self.authority.file.with_name(f"password of {user}")
        file.write_text(PASSWORDS[user] + "\n")
        return self.options._replace(user=user, password_file=str(file))._replace(**changes)


@pytest.fixture(scope="module")
def secured(can_run_etcd: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """One member, which speaks with those that show a certificate."""
    directory = tmp_path_factory.mktemp("secured")
    authority = Authority(directory, "authority")
    server, client = authority.certify("server", "/CN=etcd"), authority.certify("client")
    options = {
        "cert-file": str(server.certificate),
        "key-file": str(server.key),
        "trusted-ca-file": str(authority.file),
        "client-cert-auth": "true",
        "bcrypt-cost": "4",
        "backend-batch-limit": "1",  # it carries nothing out again after a kill, and so forgets all tokens
    }
    cluster = EtcdCluster(directory, 1, Guarded(options, authority.tls(client)))
    with cluster.running():
        secured = Secured(
            cluster,
            authority,
            ArbiterOptions(
                parse_arbiter(f"etcds://{cluster.addresses[0]}"),
                tls_ca_file=str(authority.file),
                tls_cert_file=str(client.certificate),
                tls_key_file=str(client.key),
            ),
        )
        run(make_users(secured))
        yield secured


async def make_users(secured: Secured) -> None:
    """Make the users, and let only them in."""
    administrator = EtcdClient(secured.cluster.addresses, etcd_access(secured.options))
    for name, password in PASSWORDS.items():
        await administrator.ask("auth/user/add", {"name": name, "password": password})
    for role, kind in (("root", None), ("writing", "READWRITE"), ("reading", "READ")):
        await administrator.ask("auth/role/add", {"name": role})
        if kind is not None:
            await administrator.ask("auth/role/grant", {"name": role, "perm": permission(kind)})
    for user, role in (("root", "root"), ("faircopy", "writing"), ("reader", "reading")):
        await administrator.ask("auth/user/grant", {"user": user, "role": role})
    await administrator.ask("auth/enable", {})
    await administrator.close()


def permission(kind: str) -> dict[str, str]:
    """The permission of a role for the keys of the set, and for no others."""
    end = PREFIX[:-1] + bytes([PREFIX[-1] + 1])
    return {"permType": kind, "key": b64encode(PREFIX).decode(), "range_end": b64encode(end).decode()}


def run(work: Awaitable[None]) -> None:
    """Await it, for as long as nothing takes on the slowest machine."""

    async def main() -> None:
        async with asyncio.timeout(SECONDS):
            await work

    asyncio.run(main())


def opened(options: ArbiterOptions, name: str = SET) -> EtcdBackend:
    """A client; it asks for nothing yet."""
    backend = open_backend(options, name, "process", asyncio.get_running_loop())
    assert isinstance(backend, EtcdBackend)
    return backend


def session_of(backend: Backend) -> Session:
    return Session(backend, f"s{next(NUMBERS)}", LEASE_SECONDS, uptime_ms)


async def until(check: Callable[[], object]) -> None:
    while not check():
        await asyncio.sleep(0.05)


def test_a_session_lives_behind_tls_with_a_role_for_its_own_keys(secured: Secured) -> None:
    async def main() -> None:
        sessions = [session_of(opened(secured.of("faircopy"))) for _ in range(2)]
        for session in sessions:
            await session.open()
        revision = await sessions[0].transact({}, {"x": b"1"}, bound=["x"])
        await sessions[1].fence()
        assert sessions[1].get("x") == (b"1", revision)
        await sessions[0].close()
        await sessions[1].fence()
        assert sessions[1].get("x") is None
        assert len(sessions[1].scan("sessions/")) == 1
        await sessions[1].close()

    run(main())


def test_what_is_left_of_a_lease_may_be_asked_for_with_that_role(secured: Secured) -> None:
    async def main() -> None:
        backend = opened(secured.of("faircopy"))
        lease = await backend.grant(LEASE_SECONDS)
        await backend.attempt(Attempt({}, {"mine": b""}, frozenset({"mine"}), lease))
        assert await backend.keep_alive(lease)
        assert await backend.lease_seconds_left("mine") is not None
        await backend.revoke(lease)
        await backend.close()

    run(main())


async def refusal_of(options: ArbiterOptions) -> str:
    """What a session that begins is told; it does not wait for the store, and can be closed."""
    session = session_of(opened(options))
    with pytest.raises(StoreRefused) as refused:
        await session.open()
    await session.close()
    return str(refused.value)


def test_a_wrong_password_is_told_and_not_shown(secured: Secured, tmp_path: Path) -> None:
    async def main() -> None:
        file = tmp_path / "password"
        file.write_text("secret")
        told = await refusal_of(secured.of("faircopy", password_file=str(file)))
        assert "faircopy with the password in arbiter.password.file" in told
        assert "secret" not in told

    run(main())


@pytest.mark.parametrize("user", ["reader", "poor"])
def test_who_may_not_write_the_keys_of_the_set_is_told_which_role_is_missing(
    secured: Secured, user: str
) -> None:
    async def main() -> None:
        told = await refusal_of(secured.of(user))
        assert f"does not let {user} read and write the keys that begin with /faircopy/orders/" in told
        assert "etcdctl role grant-permission" in told

    run(main())


def test_a_role_is_not_for_another_set(secured: Secured) -> None:
    async def main() -> None:
        backend = opened(secured.of("faircopy"), "others")
        with pytest.raises(StoreRefused, match="begin with /faircopy/others/"):
            await backend.snapshot()
        await backend.close()

    run(main())


def test_who_gives_no_user_is_told_to(secured: Secured) -> None:
    async def main() -> None:
        assert "give one as arbiter.user" in await refusal_of(secured.options)

    run(main())


def test_a_server_that_another_authority_has_certified_is_not_trusted(
    secured: Secured, tmp_path: Path
) -> None:
    async def main() -> None:
        other = Authority(tmp_path, "other")
        told = await refusal_of(secured.of("faircopy", tls_ca_file=str(other.file)))
        assert "its certificate is not trusted" in told
        assert "arbiter.tls.ca.file" in told
        assert "is not trusted" in await refusal_of(secured.of("faircopy", tls_ca_file=""))

    run(main())


def test_a_server_that_does_not_take_the_clients_certificate_is_told_of(
    secured: Secured, tmp_path: Path
) -> None:
    async def main() -> None:
        stranger = Authority(tmp_path, "other").certify("stranger")
        for certificate, key in ((str(stranger.certificate), str(stranger.key)), ("", "")):
            options = secured.of("faircopy", tls_cert_file=certificate, tls_key_file=key)
            told = await refusal_of(options)
            assert "it refuses this broker's certificate" in told

    run(main())


def test_a_certificate_with_a_common_name_is_refused_by_the_gateway(secured: Secured) -> None:
    async def main() -> None:
        named = secured.authority.certify("named", "/CN=faircopy")
        options = secured.of("faircopy", tls_cert_file=str(named.certificate), tls_key_file=str(named.key))
        assert "give one without as arbiter.tls.cert.file" in await refusal_of(options)

    run(main())


def test_who_speaks_tls_where_etcd_does_not_or_not_where_it_does_is_told_what_to_try(
    secured: Secured, etcd: list[str]
) -> None:
    """It may as well be about to start."""

    async def main() -> None:
        with_tls = secured.of("faircopy", address=parse_arbiter(f"etcds://{etcd[0]}"))
        without = ArbiterOptions(parse_arbiter(f"etcd://{secured.cluster.addresses[0]}"))
        for options, advice in ((with_tls, "give arbiter as etcd://"), (without, "give arbiter as etcds://")):
            backend = opened(options)
            with pytest.raises(StoreUnavailable, match=advice):
                await backend.snapshot()
            await backend.close()

    run(main())


def test_a_key_with_a_passphrase_is_not_asked_for_it(secured: Secured) -> None:
    async def main() -> None:
        locked = secured.authority.certify("locked", passphrase="secret")
        options = secured.of("faircopy", tls_cert_file=str(locked.certificate), tls_key_file=str(locked.key))
        with pytest.raises(BadSetting, match="has a passphrase"):
            opened(options)

    run(main())


def test_a_user_may_come_before_etcd_knows_users(secured: Secured, etcd: list[str]) -> None:
    async def main() -> None:
        user = secured.of("faircopy")
        options = ArbiterOptions(parse_arbiter(f"etcd://{etcd[0]}"), user.user, user.password_file)
        session = session_of(opened(options, "without-users"))
        await session.open()
        await session.close()

    run(main())


def test_a_token_that_etcd_does_not_know_any_more_is_renewed(secured: Secured) -> None:
    async def main() -> None:
        backend = opened(secured.of("faircopy"))
        lease = await backend.grant(LEASE_SECONDS)
        requests: list[Callable[[], Awaitable[object]]] = [
            backend.snapshot,
            lambda: backend.read("x"),
            lambda: backend.attempt(Attempt({}, {"x": b""})),
            lambda: backend.keep_alive(lease),
            lambda: backend.lease_seconds_left("x"),
            lambda: backend.revoke(lease),
        ]
        for request in requests:
            backend._access.token = "gone.1"
            await request()
            assert backend._access.token != "gone.1"
        await backend.close()

    run(main())


def test_a_watch_whose_token_etcd_does_not_know_any_more_begins_anew(secured: Secured) -> None:
    async def main() -> None:
        backend = opened(secured.of("faircopy"))
        before = (await backend.snapshot()).revision
        written = await backend.attempt(Attempt({}, {"x": b"1"}))
        assert written is not None
        backend._access.token = "gone.1"
        with pytest.raises(StoreUnavailable):
            await changes_until(backend, before, written)
        assert [change.key for change in await changes_until(backend, before, written)] == ["x"]
        await backend.close()

    run(main())


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_session_outlives_an_etcd_that_is_started_again_and_knows_no_token(secured: Secured) -> None:
    """A connection that ends while TLS begins is left for the collector, which warns of that."""

    async def main() -> None:
        backend = opened(secured.of("faircopy"))
        session = session_of(backend)
        await session.open()
        token = backend._access.token
        secured.cluster.members[0].kill()
        secured.cluster.members[0].start()
        revision = await session.transact({}, {"x": b"after"})
        assert session.get("x") == (b"after", revision)
        assert backend._access.token != token
        await session.close()

    run(main())
    gc.collect()


def test_who_loses_a_role_waits_for_it_and_says_so_once(
    secured: Secured, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        administrator = EtcdClient(secured.cluster.addresses, etcd_access(secured.of("root")))
        backend = opened(secured.of("faircopy"))
        session = session_of(backend)
        await session.open()
        await administrator.ask("auth/user/revoke", {"name": "faircopy", "role": "writing"})
        writing = asyncio.ensure_future(session.transact({}, {"x": b"late"}))
        await until(lambda: caplog.records)
        with pytest.raises(StoreUnavailable):
            await backend.snapshot()
        with pytest.raises(StoreUnavailable):
            await changes_until(backend, 0, 1)
        await administrator.ask("auth/user/grant", {"user": "faircopy", "role": "writing"})
        await writing
        assert len([each for each in caplog.records if "role grant-permission" in each.message]) == 1
        await session.close()
        await administrator.close()

    with caplog.at_level(logging.WARNING, "faircopy"):
        run(main())


def test_two_sets_in_one_etcd_do_not_see_each_other(secured: Secured, etcd: list[str]) -> None:
    async def main() -> None:
        options = ArbiterOptions(parse_arbiter(f"etcd://{etcd[0]}"))
        sets = [opened(options, name) for name in ("twin", "twin2", "twin.2")]
        before = (await sets[0].snapshot()).revision
        written = [await backend.attempt(Attempt({}, {"x": b"%d" % n})) for n, backend in enumerate(sets)]
        for number, backend in enumerate(sets):
            entries = (await backend.snapshot()).entries
            assert entries == {"x": (b"%d" % number, written[number])}
            changes = await changes_until(backend, before, written[number] or 0)
            assert [(change.key, change.value) for change in changes] == [("x", b"%d" % number)]
            await backend.close()

    run(main())
