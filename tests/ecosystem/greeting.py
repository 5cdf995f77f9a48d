"""A program that answers each name with a greeting, its broker, its input, and its answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer

from tests.broker_process import BrokerProcess
from tests.clients.talk import create_topic
from tests.ecosystem.program import ForeignProgram
from tests.ecosystem.reader import TopicReader
from tests.finding import a_finding_if_not

NAMES = 500
PARTITIONS = 2
CALL_SECONDS = 60.0


def ensure_each_is_greeted(
    directory: Path, program_for: Callable[[str], ForeignProgram], *, commits: bool = True
) -> None:
    """Raise AssertionError unless a program greets each name once. One that commits its offsets is stopped
    in order, and started again; then the broker is killed with -9 while the program is idle.
    """
    with BrokerProcess(directory) as broker:
        for topic in ("names", "greetings"):
            create_topic(broker.address, topic, PARTITIONS)
        with program_for(broker.address) as program, TopicReader(broker.address, "greetings") as reader:
            greet(broker, range(NAMES), program, reader)
            if commits:
                program.stop()
                program.start()
            greet(broker, range(NAMES, 2 * NAMES), program, reader)
            broker.restart()
            greet(broker, range(2 * NAMES, 3 * NAMES), program, reader)
        broker.ensure_no_traceback()


def greet(broker: BrokerProcess, names: range, program: ForeignProgram, reader: TopicReader) -> None:
    """Write these names, and see the greetings of all names up to the last of them."""
    write_names(broker, names)
    until_greeted(names.stop, program, reader)
    ensure_none_is_repeated(reader)  # no Finding: nobody here asks for more than at least once


def write_names(broker: BrokerProcess, names: range) -> None:
    """Write each of them once."""
    producer = Producer({"bootstrap.servers": broker.address, "enable.idempotence": True, "log_level": 0})
    for name in names:
        producer.produce("names", b"name-%d" % name, partition=name % PARTITIONS)
    assert producer.flush(CALL_SECONDS) == 0


def until_greeted(names: int, program: ForeignProgram, reader: TopicReader) -> None:
    """Return when so many are greeted. Raises Finding if anybody else is."""
    reader.until(lambda: len(answers(reader)) >= names, program)
    with a_finding_if_not():
        assert answers(reader).keys() == {b"hello name-%d" % name for name in range(names)}


def ensure_none_is_repeated(reader: TopicReader) -> None:
    """Raise AssertionError if a greeting came twice."""
    repeated = {answer for answer, times in answers(reader).items() if times > 1}
    assert not repeated, f"{len(repeated)} came more than once: {sorted(map(str, repeated))[:10]}"


def answers(reader: TopicReader) -> Counter[bytes | None]:
    """How often each greeting has come."""
    return Counter(message.value() for message in reader.messages)
