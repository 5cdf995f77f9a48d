"""What every versioned map does: the one in memory of the tests, the catalogue's journal, and a session with
the arbiter's store. What backends do, and sessions in trouble, is in tests/arbiter.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from faircopy.arbiter.session import Session
from faircopy.storage.versioned_map import ABSENT, Conflict, VersionedMap, take_block
from tests.arbiter.memory_backend import MemoryBackend, MemoryServer, Troubles
from tests.arbiter.test_session import in_virtual_time
from tests.unit.catalogue.memory_map import MemoryMap
from tests.unit.catalogue.opened import Opened

Test = Callable[[VersionedMap], Awaitable[Any]]
LEASE_SECONDS = 30.0


def on_memory(test: Test, _directory: Path) -> None:
    asyncio.run(played(test, MemoryMap()))


def on_journal(test: Test, directory: Path) -> None:
    async def main() -> None:
        with Opened(directory) as opened:
            await test(opened.catalogue)

    asyncio.run(main())


def on_session(test: Test, _directory: Path) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        backend = MemoryBackend(MemoryServer(), random.Random(0), Troubles())
        session = Session(backend, "the only one", LEASE_SECONDS, lambda: loop.time() * 1000)
        await session.open()
        await test(session)
        await session.close()

    in_virtual_time(main)


async def played(test: Test, store: VersionedMap) -> None:
    await test(store)


@pytest.fixture(params=[on_memory, on_journal, on_session])
def contract(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Test], None]:
    """Runs a test on a fresh map of each kind."""
    return lambda test: request.param(test, tmp_path)


def test_values_and_versions(contract: Callable[[Test], None]) -> None:
    async def test(store: VersionedMap) -> None:
        assert store.get("a") is None
        first = await store.transact({}, {"a": b"1"})
        assert first > ABSENT
        assert store.get("a") == (b"1", first)
        second = await store.transact({"a": first}, {"a": b"2", "b": b"x"})
        assert second > first
        assert store.get("a") == (b"2", second)
        assert store.get("b") == (b"x", second)
        await store.transact({}, {"a": None})
        assert store.get("a") is None

    contract(test)


def test_versions_grow_over_all_keys(contract: Callable[[Test], None]) -> None:
    """So a key that is deleted and made again never has an old version."""

    async def test(store: VersionedMap) -> None:
        made = await store.transact({"a": ABSENT}, {"a": b"1"})
        other = await store.transact({}, {"b": b"1"})
        deleted = await store.transact({"a": made}, {"a": None})
        again = await store.transact({"a": ABSENT}, {"a": b"1"})
        assert made < other < deleted < again
        with pytest.raises(Conflict):
            await store.transact({"a": made}, {"a": b"lost"})

    contract(test)


def test_a_conflict_writes_nothing(contract: Callable[[Test], None]) -> None:
    async def test(store: VersionedMap) -> None:
        first = await store.transact({"a": ABSENT}, {"a": b"1"})
        for expected in ({"a": ABSENT}, {"a": first + 1}, {"a": first, "b": first}):
            with pytest.raises(Conflict):
                await store.transact(expected, {"a": b"lost", "c": b"lost"})
        assert store.get("a") == (b"1", first)
        assert store.get("c") is None

    contract(test)


def test_of_several_at_once_one_succeeds(contract: Callable[[Test], None]) -> None:
    async def test(store: VersionedMap) -> None:
        outcomes = await asyncio.gather(
            *(store.transact({"a": ABSENT}, {"a": b"%d" % number}) for number in range(3)),
            return_exceptions=True,
        )
        assert [isinstance(outcome, Conflict) for outcome in outcomes] == [False, True, True]
        assert store.get("a") == (b"0", outcomes[0])

    contract(test)


def test_whoever_is_refused_sees_why(contract: Callable[[Test], None]) -> None:
    """After a conflict a reader finds what was in the way, and need not ask in a circle."""

    async def test(store: VersionedMap) -> None:
        writing = asyncio.ensure_future(store.transact({}, {"a": b"1"}))
        await asyncio.sleep(0)
        with pytest.raises(Conflict):
            await store.transact({"a": ABSENT}, {"a": b"2"})
        assert store.get("a") is not None
        await writing

    contract(test)


def test_scan_is_by_prefix_and_in_order(contract: Callable[[Test], None]) -> None:
    async def test(store: VersionedMap) -> None:
        await store.transact({}, dict.fromkeys(("topics/b", "topics/a", "topic", "zebra"), b""))
        assert list(store.scan("topics/")) == ["topics/a", "topics/b"]

    contract(test)


def test_blocks_are_never_given_twice(contract: Callable[[Test], None]) -> None:
    async def test(store: VersionedMap) -> None:
        blocks = await asyncio.gather(*(take_block(store, "counter", 10) for _ in range(5)))
        numbers = sorted(number for block in blocks for number in block)
        assert numbers == list(range(50))

    contract(test)
