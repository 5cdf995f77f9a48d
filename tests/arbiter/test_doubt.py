"""A real broker over a real etcd that is stopped while clients wait for answers."""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.systems.ports import HeldPorts
from faircopy.api.create_topics import SCHEMA as CREATE_TOPICS
from faircopy.api.fetch.fetch import SCHEMA as FETCH
from faircopy.api.inspect import SCHEMA as INSPECT
from faircopy.api.metadata import SCHEMA as METADATA
from faircopy.client.connection import BrokerConnection
from faircopy.wire.messages import encode_request
from tests.arbiter.etcd import EtcdCluster, Member
from tests.arbiter.failover.brokers import LOST, SetMember
from tests.broker_process import environment, eventually

LEASE_SECONDS = 3
ANSWER_SECONDS = 120.0
TOPIC = "red"

pytestmark = [pytest.mark.usefixtures("can_run_etcd"), pytest.mark.timeout(600)]


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Member]:
    """An etcd of one member, which may be stopped."""
    with EtcdCluster(tmp_path, 1).running() as cluster:
        yield cluster.members[0]


@pytest.fixture
def leader(tmp_path: Path, etcd: Member) -> Iterator[SetMember]:
    """A broker that serves by a lease there."""
    port = HeldPorts(1)
    settings = [f"arbiter.lease.ms={LEASE_SECONDS * 1000}"]
    broker = SetMember(tmp_path, 1, port.numbers[0], f"etcd://{etcd.address}", settings)
    try:
        broker.start("--new-set")
        eventually(lambda: broker.is_ready)
        yield broker
    finally:
        broker.end()


class Waiting:
    """A client that has sent a request, and waits for its answer."""

    def __init__(self, address: str, request: bytes) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), ANSWER_SECONDS)
        self._socket.sendall(request)

    @property
    def hears(self) -> bool:
        """Whether an answer has come, or the connection was closed."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def answer(self) -> bytes:
        """The beginning of the answer; empty if the connection was closed instead."""
        with self._socket:
            try:
                return self._socket.recv(4096)
            except ConnectionResetError:
                return b""


def fetch(address: str) -> Waiting:
    """A fetch at the end of a log, which is over once the lease must be in doubt."""
    at_the_end = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    body = {
        "max_wait_ms": LEASE_SECONDS * 1000,
        "min_bytes": 1,
        "topics": [{"topic": TOPIC, "partitions": [at_the_end]}],
    }
    return Waiting(address, encode_request(FETCH, 4, 1, "test", body))


def metadata(address: str) -> Waiting:
    """A request that would be answered at once."""
    return Waiting(address, encode_request(METADATA, 1, 2, "test", {"topics": None}))


def is_served(address: str) -> bool:
    """Whether somebody listens, and answers."""
    try:
        return bool(metadata(address).answer())
    except ConnectionRefusedError:
        return False


def is_in_doubt(address: str) -> bool:
    """What the broker says of its lease."""
    with BrokerConnection(address, ANSWER_SECONDS) as connection:
        about = json.loads(connection.ask(INSPECT, 0, {"subject": "broker"}).document)
        return bool(about["lease_in_doubt"])


def replicas_status(address: str) -> str:
    """What people are told of the replica set."""
    command = [sys.executable, "-m", "faircopy", "replicas", "status", "-b", address]
    asked = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=ANSWER_SECONDS, check=True
    )
    return asked.stdout + asked.stderr


def make_topic(address: str) -> None:
    topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    with BrokerConnection(address) as connection:
        body = {"topics": [topic], "timeout_ms": 60_000, "validate_only": False}
        assert connection.ask(CREATE_TOPICS, 2, body).topics[0].error_code == 0


@pytest.mark.parametrize("stopped_seconds", [0, LEASE_SECONDS + 1], ids=["briefly", "beyond the lease"])
def test_no_answer_comes_while_the_lease_is_in_doubt(
    etcd: Member, leader: SetMember, stopped_seconds: int
) -> None:
    make_topic(leader.address)
    etcd.pause()
    try:
        begun = fetch(leader.address)
        eventually(lambda: is_in_doubt(leader.address))
        fresh = metadata(leader.address)
        time.sleep(stopped_seconds)
        assert is_in_doubt(leader.address), "nobody has renewed it"
        if stopped_seconds:
            assert "its lease may have expired" in replicas_status(leader.address)
        assert not begun.hears
        assert not fresh.hears
    finally:
        etcd.go_on()
    answers = [begun.answer(), fresh.answer()]
    is_renewed = LOST not in leader.log
    assert [bool(answer) for answer in answers] == [is_renewed] * 2
    # Either way the same process serves on.
    eventually(lambda: is_served(leader.address))
    assert len(leader.lives) == (1 if is_renewed else 2)
