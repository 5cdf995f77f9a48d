"""`faircopy txn outcome`: what became of the last transaction of a transactional id."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException, Producer

from faircopy.testing import Broker

KNOWN, NOT_KNOWN = 0, 1


@pytest.fixture(scope="module")
def kept() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def ask(broker: Broker, name: str, *options: str, code: int = KNOWN) -> str:
    """What the command prints; it must end with this exit code."""
    command = [sys.executable, "-m", "faircopy", "txn", "outcome", name, *options]
    run = subprocess.run(
        [*command, "--broker", broker.bootstrap_servers], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == code, (run.returncode, run.stdout, run.stderr)
    return run.stdout


def writer(broker: Broker, name: str) -> tuple[Producer, str]:
    """A producer with this transactional id that has one message in an open transaction, and its topic."""
    topic = broker.create_topic()
    producer = Producer(broker.confluent_kafka.producer(name))
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"1")
    producer.flush(60)
    return producer, topic


def test_a_transaction_is_open_and_then_committed(kept: Broker) -> None:
    producer, _ = writer(kept, "loader")
    assert ask(kept, "loader").startswith("loader: open: ")
    producer.commit_transaction(60)
    assert ask(kept, "loader").startswith("loader: committed: ")
    told = json.loads(ask(kept, "loader", "--json"))
    assert (told["transactional_id"], told["outcome"]) == ("loader", "committed")


def test_a_transaction_is_aborted(kept: Broker) -> None:
    producer, _ = writer(kept, "quitter")
    producer.abort_transaction(60)
    assert ask(kept, "quitter").startswith("quitter: aborted: ")


@pytest.mark.parametrize(("takes_effect", "outcome"), [(True, "committed"), (False, "open")])
def test_it_tells_what_a_lost_answer_did_not(kept: Broker, takes_effect: bool, outcome: str) -> None:
    name = f"asker-{outcome}"
    producer, topic = writer(kept, name)
    kept.time_out_next_commit(takes_effect=takes_effect, transactional_id=name)
    with pytest.raises(KafkaException):
        producer.commit_transaction(1)
    assert json.loads(ask(kept, name, "--json"))["outcome"] == outcome
    assert len(kept.values(topic)) == takes_effect


def test_it_outlives_the_broker_and_the_next_instance(kept: Broker) -> None:
    """The next instance of a producer changes nothing while it has begun nothing."""
    producer, _ = writer(kept, "survivor")
    producer.commit_transaction(60)
    kept.restart()
    assert ask(kept, "survivor").startswith("survivor: committed: ")
    Producer(kept.confluent_kafka.producer("survivor")).init_transactions(60)
    assert ask(kept, "survivor").startswith("survivor: committed: ")


def test_what_the_broker_does_not_know(kept: Broker) -> None:
    assert "never met" in ask(kept, "nobody", code=NOT_KNOWN)
    Producer(kept.confluent_kafka.producer("idle")).init_transactions(60)
    assert "no transaction of it" in ask(kept, "idle", code=NOT_KNOWN)
    assert json.loads(ask(kept, "idle", "--json", code=NOT_KNOWN))["outcome"] == "not known"
