"""NestJS asks and answers over Kafka, with a topic for the answers."""

from __future__ import annotations

from pathlib import Path

from tests.broker_process import BrokerProcess
from tests.ecosystem.node_program import node_program
from tests.finding import a_finding_if_not

QUESTIONS = 50


def test_nest(tmp_path: Path) -> None:
    """A service answers each question, also after kill -9 of the broker, which makes the topics by itself."""
    with BrokerProcess(tmp_path) as broker:
        with node_program("nest_service.mjs", [broker.address], tmp_path / "service") as service:
            ensure_answered(broker, range(QUESTIONS), tmp_path / "one")
            broker.restart()
            ensure_answered(broker, range(QUESTIONS, 2 * QUESTIONS), tmp_path / "two")
            service.ensure_it_runs()
        broker.ensure_no_traceback()


def ensure_answered(broker: BrokerProcess, questions: range, directory: Path) -> None:
    """Ask each question after the answer to the one before."""
    arguments = [broker.address, str(questions.start), str(questions.stop)]
    client = node_program("nest_client.mjs", arguments, directory)
    client.start()
    client.wait()
    answers = [line for line in client.log.splitlines() if line.startswith("answer: ")]
    with a_finding_if_not():
        assert answers == [f"answer: hello name-{number}" for number in questions]
