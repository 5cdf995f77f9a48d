"""Producer ids: each is given once, and topics note which were given before them."""

from __future__ import annotations

import asyncio

from faircopy.catalogue.producer_ids import ProducerIds
from faircopy.catalogue.topics import Topics
from tests.unit.catalogue.memory_map import MemoryMap


def test_the_next_id_is_above_all_that_were_given() -> None:
    store = MemoryMap()
    for block in range(3):
        ids = ProducerIds(store, 2)
        for number in range(2):
            assert ids.next_id == 2 * block + number
            assert asyncio.run(ids.next()) == 2 * block + number
        assert ids.next_id == 2 * block + 2


def test_a_topic_says_which_producers_are_older() -> None:
    topics = Topics(MemoryMap())
    (made,) = asyncio.run(topics.write([topics.new("orders", 1, {}, first_producer_id=7)]))
    assert made.first_producer_id == 7
    (grown,) = asyncio.run(topics.write([made._replace(partitions=2)]))
    assert topics.load() == [grown]
    assert grown.first_producer_id == 7
