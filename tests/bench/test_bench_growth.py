"""The growth measure: its rows are complete, what should be open is open, and nothing is left behind."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import psutil
import pytest

from bench.load.clients import make_topic
from bench.load.open_transactions import open_transactions
from bench.measures.growth import Sizes, measure
from bench.systems.faircopy import Faircopy
from faircopy.api.list_transactions import SCHEMA as LIST_TRANSACTIONS
from faircopy.client.connection import BrokerConnection
from faircopy.client.errors import RequestFailed
from tests.broker_process import BrokerProcess

NAME = "local-copy fsync"


def states(address: str) -> Counter[str]:
    """How many transactional ids are in which state."""
    with BrokerConnection(address) as connection:
        answer = connection.ask(LIST_TRANSACTIONS, 0, {"state_filters": [], "producer_id_filters": []})
    return Counter(each.transaction_state for each in answer.transaction_states)


def brokers() -> list[psutil.Process]:
    """The brokers that this process has started."""
    return [child for child in psutil.Process().children(recursive=True) if "faircopy" in child.cmdline()]


def test_every_size_has_a_complete_row(tmp_path: Path) -> None:
    said: list[str] = []
    before = brokers()
    sizes = Sizes([1, 20], [1, 200], [10_000_000, 10**18])
    rows, skipped = measure(tmp_path, {NAME: Faircopy}, sizes, 0.1, said.append)

    assert [(row.system, row.of, row.size) for row in rows] == [
        (NAME, "partitions", 1),
        (NAME, "partitions", 20),
        (NAME, "open transactions", 1),
        (NAME, "open transactions", 200),
        (NAME, "log bytes", 10_000_000),
    ]
    for row in rows:
        assert row.commit_to_ack.count > 0
        assert row.produced_bytes_per_second > 1e6
        assert row.memory_bytes > 10 << 20
        assert row.restart_seconds > 0
    assert said[3] == "local-copy fsync with 200 open transactions"
    assert [each.what for each in skipped] == [
        "growth: local-copy fsync with 1,000,000,000,000,000,000 log bytes"
    ]
    assert "3000000000 GB" in skipped[0].why
    assert brokers() == before
    assert list(tmp_path.iterdir()) == []


def test_transactions_are_open_and_stay_so(fresh_broker: BrokerProcess) -> None:
    make_topic(fresh_broker.address, "open", 3)
    with open_transactions(fresh_broker.address, "open", 3, 200, 30) as opened:
        assert opened == 200
        assert states(fresh_broker.address) == {"Ongoing": 200}
    assert states(fresh_broker.address) == {"Ongoing": 200}


def test_opening_is_bounded(fresh_broker: BrokerProcess) -> None:
    make_topic(fresh_broker.address, "open", 1)
    with open_transactions(fresh_broker.address, "open", 1, 10_000_000, 0.2) as opened:
        assert 0 < opened < 10_000_000
        assert states(fresh_broker.address) == {"Ongoing": opened}


def test_a_refusal_is_told(fresh_broker: BrokerProcess) -> None:
    make_topic(fresh_broker.address, "open", 1)
    refusal = pytest.raises(RequestFailed, match=r"ADD_PARTITIONS_TO_TXN.*UNKNOWN_TOPIC_OR_PARTITION")
    with refusal, open_transactions(fresh_broker.address, "open", 2, 2, 30):
        pass
