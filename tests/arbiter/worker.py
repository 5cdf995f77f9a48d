"""A process with a session at the shared store, which may be killed at any moment.

    python -m tests.arbiter.worker DIRECTORY NAME

It adds marks to lists that others add to as well, and prints each mark once it is acknowledged.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from pathlib import Path

from faircopy.arbiter.lmdb_backend import LmdbBackend
from faircopy.arbiter.session import Session
from faircopy.storage.versioned_map import ABSENT, Conflict

LISTS = ("lists/a", "lists/b")
LEASE_SECONDS = 120.0  # it ends with the process, whatever this says


async def work(directory: Path, name: str) -> None:
    """Add marks for ever."""
    loop = asyncio.get_running_loop()
    backend = LmdbBackend(directory, name, loop)
    session = Session(backend, name, LEASE_SECONDS, lambda: loop.time() * 1000)
    await session.open()
    await session.transact({}, {f"workers/{name}": b""}, [f"workers/{name}"])
    print("ready", flush=True)
    for number in itertools.count():
        key, mark = LISTS[number % 2], f"{name}.{number}"
        while not await is_added(session, key, mark):
            pass
        print(mark, flush=True)


async def is_added(session: Session, key: str, mark: str) -> bool:
    found = session.get(key)
    marks = json.loads(found.value) if found else []
    try:
        value = json.dumps([*marks, mark]).encode()
        await session.transact({key: found.version if found else ABSENT}, {key: value})
    except Conflict:
        return False
    return True


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1]), sys.argv[2]))
