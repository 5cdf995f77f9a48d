"""The clock of a restored backup: the time since the backup does not count."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from faircopy.backup.restore import part_from_the_original
from faircopy.storage.clock import SteadyClock, SteadyNote
from faircopy.storage.local_notes import LocalNotes
from faircopy.storage.state_store import StateStore

WEEK_MS = 7 * 86_400_000
BACKED_UP = SteadyNote("this boot", uptime_ms=5_000, steady_ms=1_790_000_000_000, limit_ms=1_790_000_120_000)


def test_a_backup_that_is_restored_a_week_later_is_no_week_older(tmp_path: Path) -> None:
    """Also on the machine that it is of, and that has been up since."""

    async def main() -> SteadyNote:
        state = tmp_path / "state.lmdb"
        store = StateStore(state, asyncio.get_running_loop())
        await LocalNotes(store).write({"steady-clock": BACKED_UP.encode()})
        store.close()
        await part_from_the_original(state)
        store = StateStore(state, asyncio.get_running_loop())
        found = LocalNotes(store).get("steady-clock")
        store.close()
        assert found is not None
        return SteadyNote.decode(found)

    machine: Any = SimpleNamespace(uptime_ms=lambda: BACKED_UP.uptime_ms + WEEK_MS, monotonic_ms=lambda: 0.0)
    noted = asyncio.run(main())
    assert SteadyClock(machine, BACKED_UP.boot_id, noted).steady_ms() == BACKED_UP.limit_ms
