"""An older copy of a directory leads under epochs that the original has not reached."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from faircopy.cluster.epochs import (
    EPOCHS_SKIPPED,
    SHARD_PREFIX,
    encode_epoch,
    epoch_in,
    raise_incarnation,
    skip_epochs,
)
from faircopy.cluster.memory_store import MemoryStore
from faircopy.shard.leader_epochs import LeaderEpochs
from faircopy.shard.placement import Placement

SHARDS = 3
LIVES = st.lists(st.lists(st.integers(0, SHARDS - 1), max_size=5), max_size=4)
"""Of each start, which shards were led anew."""


async def start(store: MemoryStore) -> LeaderEpochs:
    epochs = LeaderEpochs(store, Placement(SHARDS, SHARDS, SHARDS), await raise_incarnation(store))
    await epochs.raise_all()
    return epochs


async def live(store: MemoryStore, lives: list[list[int]]) -> int:
    """The greatest epoch under which anything was led."""
    greatest = 0
    for led_anew in lives:
        epochs = await start(store)
        for shard in led_anew:
            await epochs.raise_one(shard)
        greatest = max(greatest, *map(epochs.of_shard, range(SHARDS)))
    return greatest


def test_an_incarnation_is_nobody_elses() -> None:
    async def main() -> list[int]:
        store = MemoryStore()
        return [await raise_incarnation(store) for _ in range(3)]

    assert asyncio.run(main()) == [1, 2, 3]


def test_a_shards_record() -> None:
    async def main() -> None:
        store = MemoryStore()
        assert epoch_in(store.get(f"{SHARD_PREFIX}0")) == 0
        await store.transact({}, {f"{SHARD_PREFIX}0": encode_epoch(7)})
        assert epoch_in(store.get(f"{SHARD_PREFIX}0")) == 7

    asyncio.run(main())


@given(LIVES, LIVES)
def test_a_copy_leads_under_greater_epochs(before: list[list[int]], after: list[list[int]]) -> None:
    """Whatever happened before the copy was made, and to the original since."""

    async def main() -> None:
        original, copy = MemoryStore(), MemoryStore()
        for store in (original, copy):
            await live(store, before)
        reached = await live(original, after)
        await skip_epochs(copy)
        epochs = await start(copy)
        assert min(map(epochs.of_shard, range(SHARDS))) > reached

    asyncio.run(main())


def test_shards_may_have_come_further_than_the_incarnation() -> None:
    """As they do when they are often led anew."""

    async def main() -> None:
        store = MemoryStore()
        await live(store, [[0] * 2 * EPOCHS_SKIPPED])
        reached = epoch_in(store.get(f"{SHARD_PREFIX}0"))
        await skip_epochs(store)
        epochs = await start(store)
        assert min(map(epochs.of_shard, range(SHARDS))) > reached + EPOCHS_SKIPPED

    asyncio.run(main())
