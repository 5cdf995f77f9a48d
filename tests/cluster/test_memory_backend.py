"""The cluster store in memory, which the tests of sessions use, does what every backend does."""

from __future__ import annotations

import random

import pytest

from tests.cluster.backend_contract import BackendContract, Contract, Test, run_with_clients
from tests.cluster.memory_backend import MemoryBackend, MemoryServer, Troubles
from tests.cluster.test_session import in_virtual_time


class TestMemoryBackend(BackendContract):
    """In virtual time."""

    @pytest.fixture
    def contract(self) -> Contract:
        def run(test: Test) -> None:
            async def main() -> None:
                server = MemoryServer()
                await run_with_clients(test, lambda: MemoryBackend(server, random.Random(1), Troubles()))

            in_virtual_time(main)

        return run
