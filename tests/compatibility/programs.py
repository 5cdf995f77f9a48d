"""The programs that tests run against a broker, unmodified: which version, and what is shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
ECOSYSTEM = "tests/ecosystem"


class Program(NamedTuple):
    """A program or library. `pinned` is the file that says which version, of the package with this name; both
    are empty if it is one of Debian's.
    """

    name: str
    package: str
    pinned: str
    shown: str
    test: str

    @property
    def version(self) -> str:
        """The version that the tests run. Raises ValueError if the file does not have one."""
        if not self.pinned:
            return "Debian's"
        text = (ROOT / self.pinned).read_text()
        name = re.escape(self.package)
        forms = (
            rf"^{name}==([\w.]+)$",
            rf"<(?:dependency|artifactItem)>\s*<groupId>[^<]+</groupId>\s*<artifactId>{name}</artifactId>\s*<version>([^<]+)<",
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
        "Plain and transactional producers, groups, offsets in transactions, admin", "tests/clients",
    ),
    Program("kafka-python", "kafka-python", "constraints.txt", "The same", "tests/clients"),
    Program("aiokafka", "aiokafka", "constraints.txt", "The same", "tests/clients"),
    Program(
        "Apache Spark", "pyspark", "constraints.txt",
        "Its source for Kafka; plain tables; faircopy's own source and sink", "tests/spark",
    ),
    Program(
        "Apache Flink", "flink-connector-kafka", "tests/flink/pom.xml",
        "KafkaSource and KafkaSink, exactly once: the job and the broker are killed", "tests/flink",
    ),
    Program(
        "Kafka's client for Java, by Kafka Streams", "kafka-streams", f"{ECOSYSTEM}/streams/pom.xml",
        "A transactional producer, and each error that it may be told", f"{ECOSYSTEM}/test_errors.py",
    ),
    Program(
        "Kafka Streams", "kafka-streams", f"{ECOSYSTEM}/streams/pom.xml",
        "Word count with `exactly_once_v2`, stores in RocksDB and in memory: it and the broker are killed, "
        "its state is lost", f"{ECOSYSTEM}/test_streams.py",
    ),
    Program(
        "Kafka Connect", "connect-runtime", f"{ECOSYSTEM}/connect/runtime/pom.xml",
        "A distributed worker moves lines of files, by an exactly-once source and by a sink: it and the "
        "broker are killed", f"{ECOSYSTEM}/test_connect.py",
    ),
    Program(
        "Debezium", "debezium-connector-postgres", f"{ECOSYSTEM}/debezium/pom.xml",
        "Follows a table of PostgreSQL, exactly once: the worker and the broker are killed",
        f"{ECOSYSTEM}/test_debezium.py",
    ),
    Program(
        "Apicurio Registry", "apicurio-registry-app", f"{ECOSYSTEM}/apicurio/pom.xml",
        "Keeps schemas in a topic (kafkasql): it and the broker are killed", f"{ECOSYSTEM}/test_apicurio.py",
    ),
    Program(
        "Kafka's tools", "kafka-tools", "bench/kafka_tools/pom.xml",
        "kafka-topics, -configs, -acls, -log-dirs, -transactions and others",
        f"{ECOSYSTEM}/test_kafka_tools.py",
    ),
    Program(
        "Quix Streams", "quixstreams", f"{ECOSYSTEM}/python/quix.txt",
        "Counts words with its state in RocksDB, exactly once and at least once: it and the broker are "
        "killed, its state is deleted", f"{ECOSYSTEM}/test_quix.py",
    ),
    Program(
        "Faust", "faust-streaming", f"{ECOSYSTEM}/python/faust.txt",
        "Counts words in a table: it and the broker are killed", f"{ECOSYSTEM}/test_faust.py",
    ),
    *(
        Program(name, package, f"{ECOSYSTEM}/python/{name.lower()}.txt", shown, f"{ECOSYSTEM}/{test}.py")
        for name, package, shown, test in (
            ("FastStream", "faststream", "A subscriber and a publisher", "test_python_greeters"),
            ("Bytewax", "bytewax", "A dataflow from topic to topic", "test_python_greeters"),
            ("Arroyo", "sentry-arroyo", "A stream processor, with its offsets", "test_python_greeters"),
            ("Celery", "celery", "Tasks and their results", "test_celery"),
            ("Pathway", "pathway", "A table from topic to topic", "test_pathway_long"),
        )
    ),
    *(
        Program(name, package, f"{ECOSYSTEM}/node/package.json", shown, f"{ECOSYSTEM}/{test}.py")
        for name, package, shown, test in (
            ("KafkaJS", "kafkajs", "Groups, plain and transactional producers", "test_node"),
            ("Platformatic's client", "@platformatic/kafka", "The same, and admin", "test_node"),
            ("NestJS", "@nestjs/microservices", "A service with requests and answers", "test_nest"),
        )
    ),
    Program(
        "Spring Kafka", "spring-kafka", f"{ECOSYSTEM}/spring/kafka/pom.xml",
        "A listener that answers by a template, plain and in transactions", f"{ECOSYSTEM}/test_spring.py",
    ),
    Program(
        "Spring Cloud Stream", "spring-cloud-starter-stream-kafka", f"{ECOSYSTEM}/spring/stream/pom.xml",
        "A function between two topics", f"{ECOSYSTEM}/test_spring.py",
    ),
    Program("kcat", "", "", "Every codec, a group, metadata, offsets", f"{ECOSYSTEM}/test_kcat.py"),
    Program("rsyslog", "", "", "Its input and output for Kafka", f"{ECOSYSTEM}/test_rsyslog.py"),
    Program("syslog-ng", "", "", "Its output for Kafka", f"{ECOSYSTEM}/test_syslog_ng.py"),
)  # fmt: skip
