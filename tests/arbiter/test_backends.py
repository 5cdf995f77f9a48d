"""LMDB and etcd do what every backend of the arbiter does."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from faircopy.arbiter.backend import Attempt, Backend
from faircopy.arbiter.etcd_backend import EtcdBackend
from faircopy.arbiter.session import Session
from faircopy.storage.versioned_map import Conflict
from tests.arbiter.backend_contract import (
    LEASE_SECONDS,
    BackendContract,
    Contract,
    Make,
    Test,
    run_with_clients,
    uptime_ms,
)
from tests.arbiter.backend_process import BackendProcess

SECONDS = 100.0


def running(make_one: Make) -> Contract:
    """Runs tests on a real event loop."""

    def run(test: Test) -> None:
        async def main() -> None:
            async with asyncio.timeout(SECONDS):
                await run_with_clients(test, make_one)

        asyncio.run(main())

    return run


class TestLmdb(BackendContract):
    """Each client is a process, since a process has an environment open only once."""

    @pytest.fixture
    def contract(self, tmp_path: Path) -> Contract:
        names = itertools.count()
        return running(lambda: BackendProcess(tmp_path / "cluster", f"{next(names)}"))


class TestEtcd(BackendContract):
    """Each test has a prefix of its own."""

    @pytest.fixture
    def contract(self, tmp_path: Path, etcd: list[str]) -> Contract:
        return running(lambda: EtcdBackend(etcd, f"{tmp_path}/"))


def test_what_others_write_into_the_same_etcd_is_not_awaited(etcd: list[str]) -> None:
    async def main() -> None:
        session = Session(EtcdBackend(etcd, "one/"), "a", LEASE_SECONDS, uptime_ms)
        await session.open()
        other: Backend = EtcdBackend(etcd, "other/")
        async with asyncio.timeout(SECONDS):
            for number in range(3):
                await other.attempt(Attempt({}, {"x": b""}))
                await session.fence()
                with pytest.raises(Conflict):
                    await session.transact({"missing": number + 1}, {})
        await other.close()
        await session.close()

    asyncio.run(main())
