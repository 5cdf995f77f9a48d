"""The arbiter in memory, which the tests of sessions use, does what every backend does."""

from __future__ import annotations

import random

import pytest

from tests.arbiter.backend_contract import BackendContract, Contract, Test, run_with_clients
from tests.arbiter.memory_backend import MemoryBackend, MemoryServer, Troubles
from tests.arbiter.test_session import in_virtual_time


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
