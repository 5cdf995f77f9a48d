"""Producer ids: taken from the cluster store in blocks, and handed out one by one."""

from __future__ import annotations

import asyncio

from faircopy.cluster.store import ClusterStore, take_block

COUNTER = "counters/producer-id"


class ProducerIds:
    """A supply of producer ids. No id is given twice."""

    def __init__(self, store: ClusterStore, block: int) -> None:
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
