"""Batches that nobody can decode are counted, and do not stop the table."""

from __future__ import annotations

import pytest

from faircopy.wire.records import build_batch
from tests.unit.publish.publish_oracle import POISON, with_section
from tests.unit.publish.table_bench import GOOD, ORDERS, Place


@pytest.mark.parametrize("name", POISON)
def test_poisoned_batches_are_counted_and_do_not_stop_the_table(place: Place, name: str) -> None:
    place.log.append(ORDERS, GOOD)
    place.log.append_batch(ORDERS, with_section(build_batch(GOOD, base_offset=10), POISON[name]), 10)
    place.log.append(ORDERS, GOOD)
    published = place.publish()
    assert (published.rows, published.skipped_records) == (20, 10)
    assert place.offsets() == {ORDERS: [*range(10), *range(20, 30)]}


def test_nothing_but_poison(place: Place) -> None:
    place.log.append_batch(ORDERS, with_section(build_batch(GOOD), b"\xff" * 50), 10)
    assert (place.publish().rows, place.open().held.next_offsets) == (0, {"orders": {0: 10}})
    place.log.append(ORDERS, GOOD)
    assert place.publish().rows == 10
