"""What expires is told: at INFO what and why, at WARNING if the first check after a start leaves nothing."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

from tests.crash_states.stage import TABLES_SETTINGS, Stage
from tests.simulation.test_made_again import on_stage

DAY_MS = 86_400_000
SETTINGS = replace(TABLES_SETTINGS, plain_retention_ms=DAY_MS)
KINDS = {
    "log": ("a-0: offsets 0 to ", "retention.ms=604800000"),
    "rows": ("plain table both: ", "plain.retention.ms=86400000"),
    "ids": ("'red/1'", "transactional.id.expiration.ms=604800000"),
    "groups": ("group 'readers': ", "offsets.retention.ms=604800000"),
}


async def fill(stage: Stage) -> None:
    """Something of each kind."""
    await stage.send_plain("a-0")
    await stage.send_plain("b-0")
    await stage.publish()
    await stage.in_broker(stage.offsets_journals.commit("readers", stage.offsets(1, "a", "b")))


async def stand_still_for_ten_days(stage: Stage) -> None:
    """Nobody runs a broker, though the machine is up."""
    await stage.machine.stop()
    await asyncio.sleep(10 * DAY_MS / 1000)
    await stage.machine.start()
    await asyncio.sleep(2)  # for the tables, which may still wait for what is in the logs


async def check(stage: Stage) -> None:
    """Every check of what is too old, once."""
    await stage.in_broker(stage.broker._apply_retention())
    await stage.in_broker(stage.broker.shards.forget_idle())
    await stage.in_broker(stage.broker.shards.expire_offsets())
    await asyncio.sleep(2)  # tables tidy up by themselves


def told(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    names = ("faircopy.hosting", "faircopy.transactions", "faircopy.groups", "faircopy.storage.expiry")
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno == level and record.name.startswith(names)
    ]


def let_all_expire(caplog: pytest.LogCaptureFixture, checks: int) -> None:
    """Start a broker ten days after it was filled, and let it check that often what is too old."""
    caplog.set_level(logging.INFO, "faircopy")

    async def scene(stage: Stage) -> None:
        await fill(stage)
        caplog.clear()
        await stand_still_for_ten_days(stage)
        for _ in range(checks):
            await check(stage)

    on_stage(scene, SETTINGS)


def test_each_kind_says_what_expires_and_why(caplog: pytest.LogCaptureFixture) -> None:
    let_all_expire(caplog, checks=1)
    lines = told(caplog, logging.INFO)
    for start, reason in KINDS.values():
        assert len([line for line in lines if start in line and reason in line]) == 1, (start, lines)


def test_a_start_that_leaves_nothing_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    let_all_expire(caplog, checks=2)
    warnings = [line.split(" at the first check")[0] for line in told(caplog, logging.WARNING)]
    assert sorted(warnings) == [
        "all messages of all partitions expired",
        "all offsets of all groups expired",
        "all rows of plain table both expired",
        "all transactional ids expired",
    ]


def test_what_leaves_something_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "faircopy")

    async def scene(stage: Stage) -> None:
        await fill(stage)
        await stand_still_for_ten_days(stage)
        await stage.producer.begin_life()
        await stage.in_broker(stage.offsets_journals.commit("others", stage.offsets(1, "a")))
        await stage.plain.begin_life()
        await stage.send_plain("b-0")
        await stage.publish()
        caplog.clear()
        await check(stage)

    on_stage(scene, SETTINGS)
    assert [line for line in told(caplog, logging.WARNING) if "plain table" not in line] == []
