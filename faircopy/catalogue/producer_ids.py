"""Producer ids: taken from the catalogue in blocks, and handed out one by one.

catalogue    counters/producer-id    the first id that nobody has taken, in decimal
"""

from __future__ import annotations

import asyncio

from faircopy.storage.versioned_map import VersionedMap, take_block

COUNTER = "counters/producer-id"
IDS_SKIPPED = 1 << 32
"""More than any broker gives out after its backup."""


async def skip_ids(store: VersionedMap) -> None:
    """Give out no id again that the original of this copy may have given out since: whoever has one would be
    taken for somebody else. Durable when done.
    """
    await take_block(store, COUNTER, IDS_SKIPPED)


class ProducerIds:
    """A supply of producer ids. No id is given twice."""

    def __init__(self, store: VersionedMap, block: int) -> None:
        self._store = store
        self._block = block
        self._left: list[int] = []
        self._taking = asyncio.Lock()
        found = store.get(COUNTER)
        self.limit = int(found.value) if found else 0

    @property
    def next_id(self) -> int:
        """The least id that may still be given. All below it were given, or never will be."""
        return self._left[-1] if self._left else self.limit

    async def next(self) -> int:
        """A new producer id. It waits for the store only when a block is used up."""
        while not self._left:
            async with self._taking:
                if not self._left:
                    block = await take_block(self._store, COUNTER, self._block)
                    self._left = list(reversed(block))
                    self.limit = block.stop
        return self._left.pop()
