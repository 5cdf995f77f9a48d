"""Spark's own Kafka source: a separate library, fetched by a pom of ours."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.systems.cache import Dependency, Unavailable
from bench.systems.maven import copy_dependencies

POM = Path(__file__).parent / "pom.xml"
LIBRARY = "spark-sql-kafka-0-10_2.13-"

# Not every version of Spark has its connector in Maven Central. These were tried with Spark 4.3.0.
OLDER = {"spark.version": "4.2.0", "token.version": "4.0.0"}


@dataclass(frozen=True)
class Connector:
    """The jars for `spark.jars`, and the connector's own version, which may be older than Spark's."""

    jars: list[Path]
    version: str


def dependency() -> Dependency:
    """The connector for the installed Spark. Raises Unavailable without a Spark."""
    try:
        spark = version("pyspark")
    except PackageNotFoundError:
        raise Unavailable("pyspark is not installed: pip install 'pyspark>=4.2'") from None

    def make(directory: Path) -> None:
        try:
            copy_dependencies(POM, directory, **{"spark.version": spark, "token.version": spark})
        except Unavailable:
            copy_dependencies(POM, directory, **OLDER)

    return Dependency("spark-kafka", (POM,), make, (("spark", spark),))


def fetch_connector() -> Connector:
    """The connector for the installed Spark; fetched the first time. Raises Unavailable."""
    jars = sorted(dependency().fetch().glob("*.jar"))
    own = next(jar for jar in jars if jar.name.startswith(LIBRARY))
    return Connector(jars, own.stem.removeprefix(LIBRARY))
