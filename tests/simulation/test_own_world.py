"""A simulated world has nothing of the process that simulates it, so that a seed is the same everywhere."""

from __future__ import annotations

import os
from unittest import mock

from tests.crash_states.stage import Stage
from tests.simulation.test_made_again import on_stage

OUR_PROCESS_ID = 123_454_321


def written(stage: Stage) -> str:
    """All that is on the disk and in the state store."""
    tables = stage.machine.contents.tables.values()
    return f"{stage.machine.disk.root} {[table.values for table in tables]}"


def test_our_process_id_is_nowhere() -> None:
    """Its length would change how full the disk is, and so the history of a seed."""

    async def scene(stage: Stage) -> None:
        while_it_runs = written(stage)
        await stage.machine.stop()
        afterwards = written(stage)
        assert "clean-end" in afterwards
        assert str(OUR_PROCESS_ID) not in while_it_runs + afterwards

    with mock.patch.object(os, "getpid", return_value=OUR_PROCESS_ID):
        on_stage(scene)
