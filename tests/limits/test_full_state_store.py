"""The state store on a disk that is really full, where LMDB takes a short write for a failed disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.limits.small_disk import small_disk

PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from faircopy.storage.failures import NoSpace
from faircopy.storage.state_store import DeletePrefix, Put, StateStore

async def main():
    directory = Path(sys.argv[1])
    ballast = open(directory / "ballast", "wb")
    os.posix_fallocate(ballast.fileno(), 0, 2 << 20)
    store = StateStore(directory / "state", asyncio.get_running_loop())
    refused = 0
    for number in range(3_000):
        try:
            values = [os.urandom(row * 37 % 3_000) for row in range(number % 40)]
            changes = (Put("catalogue", b"%d %d" % (number, row), value) for row, value in enumerate(values))
            await store.write(changes)
        except NoSpace:
            refused += 1
            if refused == 20:
                break
    assert refused == 20, refused
    os.truncate(directory / "ballast", 0)
    await store.write([DeletePrefix("catalogue", b"1")])
    await store.write([Put("catalogue", b"after", b"it")])
    store.close()
    reopened = StateStore(directory / "state", asyncio.get_running_loop())
    assert reopened.get("catalogue", b"after") == b"it"
    assert not reopened.damaged
    reopened.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("size_mib", [8, 11])
def test_a_full_disk_is_no_failed_disk(tmp_path: Path, size_mib: int) -> None:
    with small_disk(tmp_path / "disk", size_mib) as disk:
        command = [*disk.inside, sys.executable, "-c", PROGRAM, str(disk.path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
