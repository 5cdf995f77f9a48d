"""Programs of Node.js that answer in transactions, and their broker, are killed with -9 in turn."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.clients.talk import create_topic
from tests.ecosystem.greeting import PARTITIONS, ensure_none_is_repeated, until_greeted, write_names
from tests.ecosystem.node_program import node_program
from tests.ecosystem.program import SupervisedProgram
from tests.ecosystem.reader import TopicReader
from tests.finding import a_finding_if_not
from tests.seeds import seed_for

ROUNDS = 3
NAMES = 300
WORK_SECONDS = 2.0


@pytest.mark.parametrize("script", ["kafkajs_transactions.mjs", "platformatic_transactions.mjs"])
def test_each_is_greeted_exactly_once(tmp_path: Path, script: str) -> None:
    """The greeting of a name and the offset after it are committed together, or not at all."""
    chance = random.Random(seed_for(f"{script} and its broker are killed"))
    with BrokerProcess(tmp_path) as broker:
        for topic in ("names", "greetings"):
            create_topic(broker.address, topic, PARTITIONS)
        program = node_program(script, [broker.address], tmp_path / "program", SupervisedProgram)
        with program, TopicReader(broker.address, "greetings") as reader:
            for number in range(ROUNDS):
                write_names(broker, range(number * NAMES, (number + 1) * NAMES))
                reader.until_there_are(number * NAMES + 1, program)
                time.sleep(chance.uniform(0, WORK_SECONDS))  # no matter how long: this only varies the moment
                broker.restart()
                time.sleep(chance.uniform(0, WORK_SECONDS))
                program.kill()
                program.start()
            until_greeted(ROUNDS * NAMES, program, reader)
            with a_finding_if_not():
                ensure_none_is_repeated(reader)
        broker.ensure_no_traceback()
