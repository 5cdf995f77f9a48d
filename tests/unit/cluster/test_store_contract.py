"""What every backend of the cluster store must do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from faircopy.cluster.lmdb_store import LmdbStore
from faircopy.cluster.memory_store import MemoryStore
from faircopy.cluster.store import ABSENT, ClusterStore, Conflict, take_block
from faircopy.storage.state_store import StateStore

Test = Callable[[ClusterStore], Awaitable[Any]]


@pytest.fixture(params=["memory", "lmdb"])
def contract(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Test], None]:
    """Runs a test on a fresh store of each backend."""

    def run(test: Test) -> None:
        async def main() -> None:
            if request.param == "memory":
                await test(MemoryStore())
                return
            state = StateStore(tmp_path / "state", asyncio.get_running_loop())
            try:
                await test(LmdbStore(state))
            finally:
                state.close()

        asyncio.run(main())

    return run


def test_values_and_versions(contract: Callable[[Test], None]) -> None:
    async def test(store: ClusterStore) -> None:
        assert store.get("a") is None
        await store.transact({}, {"a": b"1"})
        await store.transact({"a": 1}, {"a": b"2", "b": b"x"})
        found = store.get("a")
        assert found is not None
        assert found == (b"2", 2)
        await store.transact({}, {"a": None})
        assert store.get("a") is None

    contract(test)


def test_a_conflict_writes_nothing(contract: Callable[[Test], None]) -> None:
    async def test(store: ClusterStore) -> None:
        await store.transact({"a": ABSENT}, {"a": b"1"})
        for expected in ({"a": ABSENT}, {"a": 2}, {"a": 1, "b": 1}):
            with pytest.raises(Conflict):
                await store.transact(expected, {"a": b"lost", "c": b"lost"})
        assert store.get("a") == (b"1", 1)
        assert store.get("c") is None

    contract(test)


def test_scan_is_by_prefix_and_in_order(contract: Callable[[Test], None]) -> None:
    async def test(store: ClusterStore) -> None:
        await store.transact({}, dict.fromkeys(("topics/b", "topics/a", "topic", "zebra"), b""))
        assert list(store.scan("topics/")) == ["topics/a", "topics/b"]

    contract(test)


def test_blocks_are_never_given_twice(contract: Callable[[Test], None]) -> None:
    async def test(store: ClusterStore) -> None:
        blocks = await asyncio.gather(*(take_block(store, "counter", 10) for _ in range(5)))
        numbers = sorted(number for block in blocks for number in block)
        assert numbers == list(range(50))

    contract(test)
