"""A broker, and what its partitions show, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.broker_process import BrokerProcess
from tests.joint.asking import broker_with_topic, visible_everywhere


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with the topic `joint`, which a test may kill."""
    with broker_with_topic(tmp_path_factory.mktemp("client")) as broker:
        yield broker


@pytest.fixture
def seen(own_broker: BrokerProcess) -> Callable[[], list[bytes]]:
    """All values that are visible, by partition."""
    return partial(visible_everywhere, own_broker)
