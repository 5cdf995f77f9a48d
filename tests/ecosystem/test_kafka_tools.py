"""Kafka's own tools for administrators, each with a question that one broker can answer."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from bench.kafka_tools.tools import KAFKA_TOOLS
from bench.systems.maven import java
from tests.broker_process import BrokerProcess, environment
from tests.clients.talk import create_topic
from tests.ecosystem.streams.installed import STREAMS
from tests.fetch.needed import needed
from tests.java.jvm import SMALL

PACKAGE = "org.apache.kafka.tools"
RUN_SECONDS = 240
QUESTIONS = {
    "TopicCommand --create --topic made --config cleanup.policy=compact": "Created topic made.",
    "TopicCommand --describe --topic state": "Configs: cleanup.policy=compact",
    "TopicCommand --describe --topic here": "Leader: 1\tReplicas: 1\tIsr: 1",
    "ConfigCommand --describe --entity-type topics --entity-name state": "cleanup.policy=compact",
    "ConfigCommand --describe --entity-type clients": "",
    "AclCommand --list": "SecurityDisabledException: No Authorizer is configured",
    "LeaderElectionCommand --election-type preferred --all-topic-partitions": "",
    "LeaderElectionCommand --election-type preferred --topic here --partition 0": "Valid replica already",
    "MetadataQuorumCommand describe --status": "LeaderId:               1",
    "MetadataQuorumCommand describe --replication": "Leader",
    "FeatureCommand describe": "",
    "LogDirsCommand --describe": '"error":null',
    "TransactionsCommand list": "TransactionalId",
    "ClientMetricsCommand --list": "",
    "reassign.ReassignPartitionsCommand --list": "No partition reassignments found.",
    "consumer.group.ConsumerGroupCommand --list": "",
    "consumer.ConsoleConsumer --topic here --command-property group.protocol=consumer --timeout-ms 200000": (
        "Set group.protocol=classic"
    ),
}
"""What tools are asked, and what stands in their answer."""
REFUSED = ("AclCommand",)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """With all defaults."""
    with BrokerProcess(tmp_path_factory.mktemp("tools")) as process:
        create_topic(process.address, "here")
        create_topic(process.address, "state", cleanup_policy="compact")
        yield process
        process.ensure_no_traceback()


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_tool_is_answered(broker: BrokerProcess, question: str) -> None:
    """The answer is that of a cluster of one broker, or a refusal that says why."""
    tool, *arguments = question.split()
    logging = needed(STREAMS.find).glob("slf4j-simple-*.jar")
    jars = ":".join([*map(str, logging), f"{needed(KAFKA_TOOLS.find)}/*"])
    command = [str(java()), *SMALL, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", jars]
    command += [f"{PACKAGE}.{tool}", "--bootstrap-server", broker.address, *arguments]
    run = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RUN_SECONDS,
        env=environment(),
    )
    assert QUESTIONS[question] in run.stdout, run.stdout
    assert (run.returncode == 0) == (tool not in REFUSED), run.stdout
