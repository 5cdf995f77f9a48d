"""How many changes LMDB keeps."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from faircopy.arbiter import lmdb_backend
from faircopy.arbiter.backend import Attempt, ChangesForgotten
from faircopy.arbiter.lmdb_backend import LmdbBackend
from faircopy.arbiter.session import Session
from tests.arbiter.backend_contract import LEASE_SECONDS, first_changes


def test_old_changes_are_forgotten_and_a_snapshot_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lmdb_backend, "CHANGES_KEPT", 10)

    async def main() -> None:
        backend = LmdbBackend(tmp_path, "a", asyncio.get_running_loop())
        for number in range(30):
            await backend.attempt(Attempt({}, {f"{number % 7}": b"", "gone": b"" if number % 2 else None}))
        with pytest.raises(ChangesForgotten):
            await first_changes(backend, 3)
        assert {event.key for event in await first_changes(backend, 20)} == {*map(str, range(7)), "gone"}
        session = Session(backend, "late", LEASE_SECONDS, lambda: 0.0)
        await session.open()
        assert len(session.scan("")) == 9
        await session.close()

    asyncio.run(main())
