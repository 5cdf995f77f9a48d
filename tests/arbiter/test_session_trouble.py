"""Sessions whose store is away for a while, or lets go of them early."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from faircopy.arbiter.backend import StoreSnapshot, StoreUnavailable
from faircopy.arbiter.session import OPEN_SECONDS, LeaseLost, Session
from tests.arbiter.memory_backend import MemoryBackend, MemoryServer, Troubles
from tests.arbiter.test_session import LEASE_SECONDS, in_virtual_time

EVER = 1_000_000


class Away(MemoryBackend):
    """The store can't be reached so many times: when it is copied, and when a lease is renewed."""

    def __init__(self, *, copies: int = 0, renewals: int = 0) -> None:
        super().__init__(MemoryServer(), random.Random(1), Troubles())
        self.copies = copies
        self.renewals = renewals

    async def snapshot(self) -> StoreSnapshot:
        if self.copies:
            self.copies -= 1
            raise StoreUnavailable("the store can't be reached")
        return await super().snapshot()

    async def keep_alive(self, lease: int) -> bool:
        if self.renewals:
            self.renewals -= 1
            raise StoreUnavailable("the store can't be reached")
        return await super().keep_alive(lease)


async def opened(backend: MemoryBackend, on_lost: Callable[[], None] = lambda: None) -> Session:
    loop = asyncio.get_running_loop()
    session = Session(backend, "s", LEASE_SECONDS, lambda: loop.time() * 1000)
    session.on_lost = on_lost
    await session.open()
    return session


def test_a_session_begins_when_the_store_is_there() -> None:
    async def main() -> None:
        session = await opened(Away(copies=5))
        assert await session.transact({}, {"a": b"1"}) == session.revision
        await session.close()

    in_virtual_time(main)


def test_a_session_does_not_wait_for_ever() -> None:
    async def main() -> None:
        began = asyncio.get_running_loop().time()
        with pytest.raises(StoreUnavailable):
            await opened(Away(copies=EVER))
        assert asyncio.get_running_loop().time() - began < 2 * OPEN_SECONDS

    in_virtual_time(main)


def test_a_renewal_that_fails_is_tried_again_before_the_lease_is_in_doubt() -> None:
    async def main() -> None:
        backend = Away()
        session = await opened(backend, on_lost=lambda: pytest.fail("the lease is lost"))
        backend.renewals = 5
        for _ in range(int(100 * LEASE_SECONDS)):
            assert not session.is_in_doubt
            await asyncio.sleep(0.02)
        await session.close()

    in_virtual_time(main)


def test_a_lease_that_ends_early_is_noticed_at_once() -> None:
    """A member of etcd that has led, was stopped, and goes on may end leases that others have renewed (its
    issue 15247).
    """

    async def main() -> None:
        loop = asyncio.get_running_loop()
        lost: asyncio.Future[None] = loop.create_future()
        backend = Away()
        session = await opened(backend, on_lost=lambda: lost.set_result(None))
        backend.renewals = EVER
        began = loop.time()
        backend.server.expire(backend.leases[-1])
        await lost
        assert loop.time() - began < LEASE_SECONDS / 10
        with pytest.raises(LeaseLost):
            await session.transact({}, {})
        await session.close()

    in_virtual_time(main)
