"""Notes of deleted records, of which several requests change one at the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from faircopy.cluster.memory_store import MemoryStore
from faircopy.hosting.deleted_records import DeletedRecords

TOPIC: Any = SimpleNamespace(topic=SimpleNamespace(id=UUID(int=1)))


class QueuedStore(MemoryStore):
    """Carries out writes in the order of their calls, but a moment later, as a store on a disk does."""

    async def transact(self, expected: Mapping[str, int], changes: Mapping[str, bytes | None]) -> None:
        await asyncio.sleep(0)
        await super().transact(expected, changes)


@pytest.mark.parametrize("offsets", [(150, 200), (200, 150)])
def test_the_note_about_the_most_offsets_stays(offsets: tuple[int, int]) -> None:
    async def main() -> None:
        notes = DeletedRecords(QueuedStore())
        await notes.note(TOPIC, 3, 100)
        await asyncio.gather(*(notes.note(TOPIC, 3, offset) for offset in offsets))
        assert notes.of(TOPIC) == {3: 200}

    asyncio.run(main())


@pytest.mark.parametrize("is_noted_first", [True, False])
def test_a_note_that_says_more_by_now_is_not_forgotten(is_noted_first: bool) -> None:
    async def main() -> None:
        notes = DeletedRecords(QueuedStore())
        for partition in (3, 4):
            await notes.note(TOPIC, partition, 100)
        both = [notes.note(TOPIC, 3, 200), notes.forget(TOPIC, {3: 100, 4: 100, 5: 100})]
        await asyncio.gather(*(both if is_noted_first else reversed(both)))
        assert notes.of(TOPIC) == {3: 200}

    asyncio.run(main())
