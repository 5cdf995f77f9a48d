"""What every backend of the cluster store does."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from faircopy.cluster import lmdb_backend
from faircopy.cluster.backend import Attempt, Backend, ChangesForgotten, KeyChange
from faircopy.cluster.etcd_backend import EtcdBackend
from faircopy.cluster.lmdb_backend import LmdbBackend
from faircopy.cluster.session import Session
from faircopy.cluster.store import ABSENT, Conflict, take_block
from tests.cluster.backend_process import BackendProcess
from tests.cluster.memory_backend import MemoryBackend, MemoryServer, Troubles

Make = Callable[[], Backend]
Test = Callable[[Make], Awaitable[None]]
Contract = Callable[[Test], None]
SECONDS = 30.0


# The first test that needs etcd builds it.
@pytest.fixture(params=["memory", "lmdb", pytest.param("etcd", marks=pytest.mark.timeout(900))])
def contract(request: pytest.FixtureRequest, tmp_path: Path) -> Contract:
    """Runs a test with clients of a new store, which are closed in the end."""
    addresses: list[str] = request.getfixturevalue("etcd") if request.param == "etcd" else []

    def run(test: Test) -> None:
        async def main() -> None:
            server, names, made = MemoryServer(), itertools.count(), list[Backend]()

            def make_one() -> Backend:
                if request.param == "memory":
                    return MemoryBackend(server, random.Random(1), Troubles())
                if request.param == "lmdb":
                    return BackendProcess(tmp_path / "cluster", f"{next(names)}")
                return EtcdBackend(addresses, f"{tmp_path}/")

            def make() -> Backend:
                made.append(make_one())
                return made[-1]

            try:
                async with asyncio.timeout(SECONDS):
                    await test(make)
            finally:
                for backend in made:
                    await backend.close()

        asyncio.run(main())

    return run


async def first_changes(backend: Backend, revision: int) -> Sequence[KeyChange]:
    async with aclosing(backend.changes(revision)) as changes:  # type: ignore[type-var]
        async for events in changes:
            return events
    raise AssertionError("a backend's changes never end")


def test_versions_are_revisions_and_never_come_again(contract: Contract) -> None:
    async def test(make: Make) -> None:
        one, other = make(), make()
        versions = []
        for value in (b"1", b"2", None, b"1"):
            revision = await one.attempt(Attempt({}, {"a": value, "b": b""}))
            assert revision is not None
            versions.append(revision)
            assert await other.read("a") == (None if value is None else (value, revision))
        assert versions == sorted(set(versions))
        snapshot = await other.snapshot()
        assert snapshot.revision == versions[-1]
        assert snapshot.entries == {"a": (b"1", versions[-1]), "b": (b"", versions[-1])}

    contract(test)


def test_a_refused_write_writes_nothing(contract: Contract) -> None:
    async def test(make: Make) -> None:
        backend = make()
        revision = await backend.attempt(Attempt({"a": ABSENT}, {"a": b"1"}))
        assert revision is not None
        for expected in ({"a": ABSENT}, {"a": revision + 1}, {"a": revision, "b": revision}):
            assert await backend.attempt(Attempt(expected, {"a": b"lost", "c": b"lost"})) is None
        assert (await backend.snapshot()).entries == {"a": (b"1", revision)}
        assert await backend.attempt(Attempt({"a": revision, "c": ABSENT}, {"a": None})) is not None

    contract(test)


def test_changes_come_from_any_revision_on(contract: Contract) -> None:
    async def test(make: Make) -> None:
        one, other = make(), make()
        first = await one.attempt(Attempt({}, {"a": b"1", "b": b"1"}))
        second = await one.attempt(Attempt({}, {"b": None}))
        third = await one.attempt(Attempt({}, {"c": b"3"}))
        assert first is not None
        assert second is not None
        assert third is not None
        assert list(await first_changes(other, first)) == [
            KeyChange("b", None, second),
            KeyChange("c", b"3", third),
        ]
        waiting = asyncio.ensure_future(first_changes(other, third))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        fourth = await one.attempt(Attempt({}, {"a": b"4"}))
        assert list(await waiting) == [KeyChange("a", b"4", fourth or 0)]

    contract(test)


def test_what_is_bound_to_a_lease_goes_with_it(contract: Contract) -> None:
    async def test(make: Make) -> None:
        one, other = make(), make()
        lease = await one.grant(3)
        bound = Attempt({}, {"mine": b"", "ours": b""}, frozenset({"mine"}), lease)
        before = await one.attempt(bound)
        assert before is not None
        assert await one.keep_alive(lease)
        await one.revoke(lease)
        assert not await one.keep_alive(lease)
        assert list((await other.snapshot()).entries) == ["ours"]
        events = await first_changes(other, before)
        assert [(event.key, event.value) for event in events] == [("mine", None)]
        assert await one.attempt(bound) is None
        assert await other.grant(3) != lease

    contract(test)


def test_a_key_that_was_written_without_the_lease_is_not_bound_any_more(contract: Contract) -> None:
    async def test(make: Make) -> None:
        one, other = make(), make()
        lease = await one.grant(3)
        await one.attempt(Attempt({}, {"a": b"1"}, frozenset({"a"}), lease))
        await other.attempt(Attempt({}, {"a": b"2"}))
        await one.revoke(lease)
        found = await other.read("a")
        assert found is not None
        assert found.value == b"2"

    contract(test)


def test_sessions_take_blocks_that_nobody_else_gets(contract: Contract) -> None:
    async def test(make: Make) -> None:
        sessions = [Session(make(), name, 3.0, lambda: time.monotonic() * 1000) for name in "abc"]
        for session in sessions:
            await session.open()
        blocks = await asyncio.gather(
            *(take_block(session, "counter", 10) for session in sessions for _ in range(4))
        )
        assert sorted(number for block in blocks for number in block) == list(range(120))
        for session in sessions:
            await session.fence()
            assert session.scan("counter") == sessions[0].scan("counter")
            with pytest.raises(Conflict):
                await session.transact({"counter": ABSENT}, {"counter": b"0"})
        await sessions[0].close()
        await sessions[1].fence()
        assert list(sessions[1].scan("sessions/")) == ["sessions/b", "sessions/c"]
        for session in sessions[1:]:
            await session.close()

    contract(test)


@pytest.mark.timeout(900)
def test_what_others_write_into_the_same_etcd_is_not_awaited(etcd: list[str]) -> None:
    async def main() -> None:
        session = Session(EtcdBackend(etcd, "one/"), "a", 3.0, lambda: time.monotonic() * 1000)
        await session.open()
        other = EtcdBackend(etcd, "other/")
        async with asyncio.timeout(SECONDS):
            for number in range(3):
                await other.attempt(Attempt({}, {"x": b""}))
                await session.fence()
                with pytest.raises(Conflict):
                    await session.transact({"missing": number + 1}, {})
        await other.close()
        await session.close()

    asyncio.run(main())


def test_the_leases_of_a_killed_process_end(tmp_path: Path) -> None:
    async def main() -> None:
        one, other = BackendProcess(tmp_path, "one"), BackendProcess(tmp_path, "other")
        lease = await one.grant(3)
        before = await one.attempt(Attempt({}, {"brokers/1": b""}, frozenset({"brokers/1"}), lease))
        waiting = asyncio.ensure_future(first_changes(other, before or 0))
        await asyncio.sleep(0.5)
        assert not waiting.done(), "it lives"
        one.kill()
        async with asyncio.timeout(SECONDS):
            events = await waiting
        assert [(event.key, event.value) for event in events] == [("brokers/1", None)]
        assert [path.name for path in (tmp_path / "processes").iterdir()] == ["other"]
        await one.close()
        await other.close()

    asyncio.run(main())


def test_old_changes_are_forgotten_and_a_snapshot_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lmdb_backend, "CHANGES_KEPT", 10)

    async def main() -> None:
        backend = LmdbBackend(tmp_path, "a", asyncio.get_running_loop())
        for number in range(30):
            await backend.attempt(Attempt({}, {f"{number % 7}": b"", "gone": b"" if number % 2 else None}))
        with pytest.raises(ChangesForgotten):
            await first_changes(backend, 3)
        assert {event.key for event in await first_changes(backend, 20)} == {*map(str, range(7)), "gone"}
        session = Session(backend, "late", 3.0, lambda: 0.0)
        await session.open()
        assert len(session.scan("")) == 9
        await session.close()

    asyncio.run(main())
