"""Backups whose process takes its time, or ends, between the broker's answer and its lock on the snapshot."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

from faircopy.api.backup import backup
from faircopy.hosting.snapshots import CLAIM_MS, DIRECTORY, claim
from faircopy.storage.paths import exists
from faircopy.storage.system import mounted
from faircopy.wire.error_codes import ErrorCode
from tests.crash_states.stage import Stage
from tests.simulation.admin_pairs import copy_nothing
from tests.simulation.store import SimulatedStore
from tests.simulation.test_made_again import on_stage, restart


class Backups:
    """What backups ask of a broker."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def begin(self) -> str | None:
        """The id of the snapshot; None if there is another backup."""
        answer = await self._ask("begin", None)
        if answer["error_code"]:
            assert answer["error_code"] == ErrorCode.KAFKA_STORAGE_ERROR
            assert "another backup" in answer["error_message"]
            return None
        return str(json.loads(answer["document"])["snapshot"])

    async def end(self, snapshot: str | None) -> None:
        assert not (await self._ask("end", snapshot))["error_code"]

    def claim(self) -> int:
        return claim(self._stage.broker.directory.path / DIRECTORY)

    @property
    def is_there(self) -> bool:
        """Whether there is a snapshot."""
        return exists(self._stage.broker.directory.path / DIRECTORY)

    async def _ask(self, step: str, snapshot: str | None) -> dict[str, Any]:
        context: Any = SimpleNamespace(parts=self._stage.broker)
        request: Any = SimpleNamespace(step=step, snapshot=snapshot)
        asked = backup(request, context)
        return await asyncio.create_task(asked, context=self._stage.machine.life.context)


def play(scene: Callable[[Stage, Backups], Awaitable[None]]) -> None:
    """Play a scene with backups."""

    async def on_a_stage(stage: Stage) -> None:
        await scene(stage, Backups(stage))

    with mock.patch.object(SimulatedStore, "copy_to", copy_nothing):
        on_stage(on_a_stage)


def test_a_snapshot_waits_a_minute_for_its_backup() -> None:
    async def scene(_stage: Stage, backups: Backups) -> None:
        assert await backups.begin() is not None
        await asyncio.sleep(0.9 * CLAIM_MS / 1_000)
        assert await backups.begin() is None
        lock = backups.claim()
        await asyncio.sleep(10 * CLAIM_MS / 1_000)
        assert await backups.begin() is None
        assert backups.is_there
        mounted().close(lock)

    play(scene)


def test_a_snapshot_that_is_never_claimed_goes() -> None:
    async def scene(_stage: Stage, backups: Backups) -> None:
        assert await backups.begin() is not None
        await asyncio.sleep(2.1 * CLAIM_MS / 1_000)
        assert not backups.is_there

    play(scene)


def test_after_a_minute_another_backup_takes_the_place_of_one_that_never_came() -> None:
    """And what the first one then ends is not the other's."""

    async def scene(_stage: Stage, backups: Backups) -> None:
        first = await backups.begin()
        await asyncio.sleep(1.01 * CLAIM_MS / 1_000)
        second = await backups.begin()
        assert second is not None
        for stranger in (first, None, ""):
            await backups.end(stranger)
        assert backups.is_there
        await backups.end(second)
        assert not backups.is_there

    play(scene)


def test_after_a_backup_that_was_killed_the_next_need_not_wait() -> None:
    async def scene(_stage: Stage, backups: Backups) -> None:
        assert await backups.begin() is not None
        mounted().close(backups.claim())
        assert await backups.begin() is not None

    play(scene)


def test_what_an_earlier_life_of_the_broker_left_is_in_nobodys_way() -> None:
    async def scene(stage: Stage, backups: Backups) -> None:
        assert await backups.begin() is not None
        await restart(stage)
        assert await backups.begin() is not None

    play(scene)
