"""What every backend of the arbiter does: tests for each to inherit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing

import pytest

from faircopy.arbiter.backend import Attempt, Backend, KeyChange
from faircopy.arbiter.session import Session
from faircopy.storage.versioned_map import ABSENT, Conflict, take_block

Make = Callable[[], Backend]
Test = Callable[[Make], Awaitable[None]]
Contract = Callable[[Test], None]

LEASE_SECONDS = 120.0
"""So long that nothing but its end by request ends it, however slow the machine is."""


async def first_changes(backend: Backend, revision: int) -> Sequence[KeyChange]:
    """What comes first of the changes after a revision."""
    async with aclosing(backend.changes(revision)) as changes:  # type: ignore[type-var]
        async for events in changes:
            return events
    raise AssertionError("a backend's changes never end")


async def changes_until(backend: Backend, revision: int, last: int) -> list[KeyChange]:
    """All changes after a revision, up to that of the last one."""
    found = list[KeyChange]()
    async with aclosing(backend.changes(revision)) as changes:  # type: ignore[type-var]
        async for events in changes:
            found += events
            if found[-1].revision >= last:
                return found
    raise AssertionError("a backend's changes never end")


def uptime_ms() -> float:
    """The time of the running loop, which may be a virtual one."""
    return asyncio.get_running_loop().time() * 1000


async def run_with_clients(test: Test, make_one: Make) -> None:
    """Run a test with clients, which are closed in the end."""
    made = list[Backend]()

    def make() -> Backend:
        made.append(make_one())
        return made[-1]

    try:
        await test(make)
    finally:
        for backend in made:
            await backend.close()


class BackendContract:
    """The fixture `contract` runs a test with clients of a new store."""

    def test_versions_are_revisions_and_never_come_again(self, contract: Contract) -> None:
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

    def test_a_refused_write_writes_nothing(self, contract: Contract) -> None:
        async def test(make: Make) -> None:
            backend = make()
            revision = await backend.attempt(Attempt({"a": ABSENT}, {"a": b"1"}))
            assert revision is not None
            for expected in ({"a": ABSENT}, {"a": revision + 1}, {"a": revision, "b": revision}):
                assert await backend.attempt(Attempt(expected, {"a": b"lost", "c": b"lost"})) is None
            assert (await backend.snapshot()).entries == {"a": (b"1", revision)}
            assert await backend.attempt(Attempt({"a": revision, "c": ABSENT}, {"a": None})) is not None

        contract(test)

    def test_changes_come_from_any_revision_on(self, contract: Contract) -> None:
        async def test(make: Make) -> None:
            one, other = make(), make()
            first = await one.attempt(Attempt({}, {"a": b"1", "b": b"1"}))
            second = await one.attempt(Attempt({}, {"b": None}))
            third = await one.attempt(Attempt({}, {"c": b"3"}))
            assert first is not None
            assert second is not None
            assert third is not None
            assert await changes_until(other, first, third) == [
                KeyChange("b", None, second),
                KeyChange("c", b"3", third),
            ]

        contract(test)

    def test_who_has_seen_all_changes_waits_for_the_next(self, contract: Contract) -> None:
        async def test(make: Make) -> None:
            one, other = make(), make()
            revision = await one.attempt(Attempt({}, {"a": b"before"}))
            assert revision is not None
            seen = list[KeyChange]()
            async with aclosing(other.changes(revision)) as changes:  # type: ignore[type-var]
                for number in range(5):
                    coming = asyncio.ensure_future(anext(changes))
                    await asyncio.sleep(0)  # so that it begins to wait
                    written = await one.attempt(Attempt({}, {"a": b"%d" % number}))
                    seen += await coming
                    assert seen[-1] == KeyChange("a", b"%d" % number, written or 0)
            assert len(seen) == 5

        contract(test)

    def test_what_is_bound_to_a_lease_goes_with_it(self, contract: Contract) -> None:
        async def test(make: Make) -> None:
            one, other = make(), make()
            lease = await one.grant(LEASE_SECONDS)
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
            assert await other.grant(LEASE_SECONDS) != lease

        contract(test)

    def test_a_key_that_was_written_without_the_lease_is_not_bound_any_more(self, contract: Contract) -> None:
        async def test(make: Make) -> None:
            one, other = make(), make()
            lease = await one.grant(LEASE_SECONDS)
            await one.attempt(Attempt({}, {"a": b"1"}, frozenset({"a"}), lease))
            await other.attempt(Attempt({}, {"a": b"2"}))
            await one.revoke(lease)
            found = await other.read("a")
            assert found is not None
            assert found.value == b"2"

        contract(test)

    def test_what_is_left_of_a_lease_is_told_of_the_keys_that_are_bound_to_it(
        self, contract: Contract
    ) -> None:
        async def test(make: Make) -> None:
            one, other = make(), make()
            lease = await one.grant(LEASE_SECONDS)
            keys = ("mine", "ours", "missing")
            await one.attempt(Attempt({}, {"mine": b"", "ours": b""}, frozenset({"mine"}), lease))
            mine, *others = [await other.lease_seconds_left(key) for key in keys]
            assert others == [None, None]
            assert mine is not None
            assert mine.granted_seconds >= LEASE_SECONDS
            assert 0 < mine.left_seconds <= mine.granted_seconds
            await other.attempt(Attempt({}, {"mine": b""}))
            assert await one.lease_seconds_left("mine") is None, "it is not bound any more"
            await one.attempt(Attempt({}, {"ours": b""}, frozenset({"ours"}), lease))
            assert await one.lease_seconds_left("ours") is not None
            await one.revoke(lease)
            assert await other.lease_seconds_left("ours") is None

        contract(test)

    def test_sessions_take_blocks_that_nobody_else_gets(self, contract: Contract) -> None:
        async def test(make: Make) -> None:
            sessions = [Session(make(), name, LEASE_SECONDS, uptime_ms) for name in "abc"]
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
