"""The fixtures, in runs of pytest as users have them: also with pytest-xdist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.broker_process import environment
from tests.testing_library.plugin import arguments

SECONDS = 120
WORKERS = """
import os

import pytest


@pytest.mark.parametrize("number", range(8))
def test_a_topic_of_its_own(number, faircopy_broker, faircopy_topic, tmp_path_factory):
    shared = tmp_path_factory.getbasetemp().parent
    worker = os.environ["PYTEST_XDIST_WORKER"]
    (shared / f"broker-{worker}-{faircopy_broker.pid}").touch()
    assert faircopy_broker.values(faircopy_topic) == []
    assert len({each.name for each in shared.glob(f"broker-{worker}-*")}) == 1
"""
FAULTS = """
from confluent_kafka import Producer


def commit(settings, topic):
    producer = Producer(settings)
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(topic, b"1")
    producer.commit_transaction(10)


def test_leaves_faults(faircopy_broker, faircopy_topic, faircopy_producer):
    commit(faircopy_producer.confluent_kafka, faircopy_topic)
    assert faircopy_broker.requests("EndTxn") == 1
    faircopy_broker.fail_next_commit()
    faircopy_broker.kill()


def test_finds_none(faircopy_broker, faircopy_topic, faircopy_producer):
    assert faircopy_broker.planned_faults() == []
    assert faircopy_broker.requests("EndTxn") == 0
    commit(faircopy_producer.confluent_kafka, faircopy_topic)
    assert faircopy_broker.values(faircopy_topic) == [b"1"]


def test_has_settings_for_each_library(faircopy_broker, faircopy_producer):
    name, servers = faircopy_producer.transactional_id, faircopy_broker.bootstrap_servers
    with_dots = {"bootstrap.servers": servers, "transactional.id": name}
    with_underscores = {"bootstrap_servers": servers, "transactional_id": name}
    assert faircopy_producer.confluent_kafka == with_dots
    assert faircopy_producer.aiokafka == faircopy_producer.kafka_python == with_underscores
"""
WITHOUT = """
import sys


def test_nothing_of_it_is_imported():
    assert "pytest_faircopy" in sys.modules
    assert not [name for name in sys.modules if name == "faircopy" or name.startswith("faircopy.")]
"""


@pytest.mark.parametrize(
    ("tests", "more", "passed"),
    [(WORKERS, ("-n", "2"), 8), (FAULTS, ("-n", "0"), 3), (WITHOUT, ("-n", "0"), 1)],
    ids=["workers", "faults", "without"],
)
def test_a_run(tests: str, more: tuple[str, ...], passed: int, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(tests)
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "-p", "no:cov",
            f"--basetemp={tmp_path / 'base'}", *arguments(), *more,
        ],
        cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL,
        env={name: value for name, value in environment().items() if not name.startswith("PYTEST_")},
    )  # fmt: skip
    assert f"{passed} passed" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0, done.stdout + done.stderr
