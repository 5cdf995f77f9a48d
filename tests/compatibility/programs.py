"""The programs that tests run against a broker, unmodified: which version, and what is shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Program(NamedTuple):
    """A program or library. `pinned` is the file that says which version, of the package with this name."""

    name: str
    package: str
    pinned: str
    shown: str
    test: str

    @property
    def version(self) -> str:
        """The version that the tests run. Raises ValueError if the file does not have one."""
        text = (ROOT / self.pinned).read_text()
        name = re.escape(self.package)
        forms = (
            rf"^{name}==([\w.]+)$",
            rf"<artifactId>{name}</artifactId>\s*<version>([\w.-]+)</version>",
            rf'"{name}": "([\w.]+)"',
        )
        for form in forms:
            found = re.search(form, text, re.MULTILINE)
            if found is not None:
                return found[1]
        raise ValueError(f"{self.pinned} does not pin {self.package}")


PROGRAMS = (
    Program(
        "librdkafka, by confluent-kafka", "confluent-kafka", "constraints.txt",
        "Everything that the library does, transactions, groups, admin", "tests/clients",
    ),
    Program(
        "kafka-python", "kafka-python", "constraints.txt",
        "The same", "tests/clients",
    ),
    Program(
        "aiokafka", "aiokafka", "constraints.txt",
        "The same", "tests/clients",
    ),
    Program(
        "Apache Spark", "pyspark", "constraints.txt",
        "Its Kafka source and sink; plain tables; faircopy's own source and sink", "tests/spark",
    ),
    Program(
        "Apache Flink", "flink-connector-kafka", "tests/flink/pom.xml",
        "KafkaSource and KafkaSink, exactly once: job and broker are killed", "tests/flink",
    ),
)  # fmt: skip
