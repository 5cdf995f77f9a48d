"""Producer ids: each is given once, and topics note which were given before them."""

from __future__ import annotations

import asyncio

from faircopy.cluster.memory_store import MemoryStore
from faircopy.cluster.producer_ids import ProducerIds
from faircopy.cluster.topics import Topics


def test_the_next_id_is_above_all_that_were_given() -> None:
    store = MemoryStore()
    for block in range(3):
        ids = ProducerIds(store, 2)
        for number in range(2):
            assert ids.next_id == 2 * block + number
            assert asyncio.run(ids.next()) == 2 * block + number
        assert ids.next_id == 2 * block + 2


def test_a_topic_says_which_producers_are_older() -> None:
    topics = Topics(MemoryStore())
    made = asyncio.run(topics.create("orders", 1, {}, first_producer_id=7))
    assert made.first_producer_id == 7
    grown = asyncio.run(topics.replace(made._replace(partitions=2)))
    assert topics.load() == [grown]
    assert grown.first_producer_id == 7
