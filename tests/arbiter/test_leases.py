"""When leases end: at LMDB with their process, at etcd with their time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path

from faircopy.arbiter.backend import Attempt
from faircopy.arbiter.etcd_backend import EtcdBackend
from tests.arbiter.backend_contract import first_changes, uptime_ms
from tests.arbiter.backend_process import BackendProcess

SECONDS = 100.0
SHORT_SECONDS = 2.0
RENEWALS = 8
LOOKS = 5


def test_the_leases_of_a_killed_process_end(tmp_path: Path) -> None:
    async def main() -> None:
        one, other = BackendProcess(tmp_path, "one"), BackendProcess(tmp_path, "other")
        lease = await one.grant(SHORT_SECONDS)
        before = await one.attempt(Attempt({}, {"brokers/1": b""}, frozenset({"brokers/1"}), lease))
        for number in range(LOOKS):  # whoever looks for changes first ends the leases of the dead
            written = await one.attempt(Attempt({}, {"looks": b"%d" % number}))
            events = await first_changes(other, before or 0)
            assert [event.key for event in events] == ["looks"], "it lives"
            before = written
        one.kill()
        events = await first_changes(other, before or 0)
        assert [(event.key, event.value) for event in events] == [("brokers/1", None)]
        assert [path.name for path in (tmp_path / "processes").iterdir()] == ["other"]
        await one.close()
        await other.close()

    asyncio.run(within_time(main()))


def test_whoever_comes_after_the_last_process_was_killed_sees_nothing_of_it(tmp_path: Path) -> None:
    async def main() -> None:
        one = BackendProcess(tmp_path, "one")
        lease = await one.grant(SHORT_SECONDS)
        await one.attempt(Attempt({}, {"brokers/1": b"", "record": b""}, frozenset({"brokers/1"}), lease))
        one.kill()
        later = BackendProcess(tmp_path, "later")
        assert {*(await later.snapshot()).entries} == {"record"}
        await later.close()

    asyncio.run(within_time(main()))


def test_a_lease_of_etcd_that_nobody_renews_ends(etcd: list[str]) -> None:
    async def main() -> None:
        backend = EtcdBackend(etcd, "unrenewed/")
        lease = await backend.grant(SHORT_SECONDS)
        before = await backend.attempt(Attempt({}, {"mine": b""}, frozenset({"mine"}), lease))
        events = await first_changes(backend, before or 0)
        assert [(event.key, event.value) for event in events] == [("mine", None)]
        assert not await backend.keep_alive(lease)
        await backend.close()

    asyncio.run(within_time(main()))


def test_a_lease_of_etcd_that_is_renewed_in_time_outlives_its_seconds(etcd: list[str]) -> None:
    async def main() -> None:
        backend = EtcdBackend(etcd, "renewed/")
        while not await outlives(backend):
            pass
        await backend.close()

    asyncio.run(within_time(main()))


async def outlives(backend: EtcdBackend) -> bool:
    """Renew a new lease for longer than it lasts. False if this process was too slow for that to mean
    anything.
    """
    began = renewed = uptime_ms()
    lease = await backend.grant(SHORT_SECONDS)
    await backend.attempt(Attempt({}, {"ours": b""}, frozenset({"ours"}), lease))
    while renewed - began < 2 * SHORT_SECONDS * 1000:
        await asyncio.sleep(SHORT_SECONDS / RENEWALS)
        asked = uptime_ms()
        is_kept, ours = await backend.keep_alive(lease), await backend.read("ours")
        if uptime_ms() - renewed >= SHORT_SECONDS * 1000:
            return False
        assert is_kept
        assert ours is not None
        renewed = asked
    await backend.revoke(lease)
    return True


async def within_time(work: Coroutine[None, None, None]) -> None:
    """Await it, for as long as nothing takes on the slowest machine."""
    async with asyncio.timeout(SECONDS):
        await work
