"""Transactional ids that are used once: they expire, and nothing is kept of them."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner

from faircopy.cli.main import cli
from tests.broker_process import BrokerProcess, eventually
from tests.clients.conftest import CLIENTS
from tests.clients.talk import Talk, commit_values, create_topic

# Long enough to use an id on a busy machine.
SETTINGS = ("transactional.id.expiration.ms=5000",)
IDS = 2


def use_each_once(broker: BrokerProcess, topic: str) -> list[bytes]:
    """Commit one transaction with each transactional id, and return the values."""
    values = []
    for client in CLIENTS:
        with Talk(client, broker.address) as talk:
            for number in range(IDS):
                values.append(f"{client.name}-{number}".encode())
                producer = talk.transactional(f"{topic}-{client.name}-{number}")
                commit_values(producer, (topic, 0), [values[-1]])
    return values


def entries(broker: BrokerProcess, topic: str) -> list[dict[str, Any]]:
    """The entries of the topic's only journal, as `faircopy journal show` prints them."""
    (journal,) = (broker.data_directory / "journal").glob(f"{topic}.*/0")
    done = CliRunner().invoke(cli, ["journal", "show", str(journal), "--json", "-n", "1000"])
    assert done.exit_code == 0, done.output
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def forgotten(broker: BrokerProcess, topic: str) -> set[int]:
    """The producers that a partition was told to forget."""
    told = [each for each in entries(broker, topic) if each["kind"] == "FORGET_PRODUCERS"]
    return {producer_id for each in told for producer_id in each["says"]["producers"]}


def writers(broker: BrokerProcess, topic: str) -> set[int]:
    """The producers that have written drafts to a partition."""
    return {each["says"]["producer"] for each in entries(broker, topic) if each["kind"] == "DRAFT"}


def test_partitions_forget_ids_that_have_expired(broker: BrokerProcess, topic: str) -> None:
    """Also those of before a kill. An id that has expired may come back."""
    create_topic(broker.address, topic)
    values = use_each_once(broker, topic)
    broker.restart()
    assert len(writers(broker, topic)) == len(values)
    eventually(lambda: writers(broker, topic) == forgotten(broker, topic))
    values += use_each_once(broker, topic)
    with Talk(CLIENTS[0], broker.address) as talk:
        assert talk.values((topic, 0)) == values
    assert len(writers(broker, topic)) == len(values)
    eventually(lambda: writers(broker, topic) == forgotten(broker, topic))
