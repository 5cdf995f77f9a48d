"""Tables whose names look like those of files that readers leave out: they are read as others are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from faircopy.publish import compaction
from faircopy.publish.names import UNREADABLE
from tests.spark.test_plain_tables import PARTITIONS, Publisher
from tests.spark.test_readers import RIGHT, WAYS, Place, Way

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUBLICATIONS = 15
ROWS = PUBLICATIONS * 4 * len(PARTITIONS)


@pytest.fixture(scope="module", params=["_orders", ".orders", "orders._COPYING_"])
def place(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Place]:
    yield from place_of(spark, tmp_path_factory, request.param)


@pytest.fixture(scope="module", params=sorted(UNREADABLE))
def unreadable(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Place]:
    yield from place_of(spark, tmp_path_factory, request.param)


def place_of(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, name: str) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("names")
    (root / "one").mkdir()
    (root / "two").mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compaction, "MANY_FILES", 10)
        publisher, other = Publisher(root / "one", name), Publisher(root / "two", topic="other")
        publisher.publish(PUBLICATIONS)
        other.publish(1)
    yield Place(spark, publisher.directory, other.directory)
    publisher.close()
    other.close()


RIGHT_WAYS = [way for way in WAYS if way.outcome == RIGHT]


@pytest.mark.parametrize("way", RIGHT_WAYS, ids=lambda way: f"{way.reader}: {way.how}")
def test_it_is_read(place: Place, way: Way) -> None:
    assert len(way.read(place)) == ROWS


def test_names_that_a_topic_can_not_have_are_those_that_are_not_read(unreadable: Place) -> None:
    assert any(not reads_all(way, unreadable) for way in RIGHT_WAYS)


def reads_all(way: Way, place: Place) -> bool:
    try:
        return len(way.read(place)) == ROWS
    except Exception:
        return False
