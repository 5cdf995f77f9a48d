"""Three brokers keep the same journals, in three shards: real processes, over LMDB. The first one leads."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tests.arbiter.test_set_of_one import Member, at_the_arbiter, faircopy, members, run
from tests.broker_process import BrokerProcess, eventually
from tests.child_process import next_line

SECRET = "nobody knows this secret"
TRANSACTIONS = 20
__all__ = ["members"]  # a fixture


def begin(tmp_path: Path, members: Any, broker: int, *arguments: str) -> Member:
    """Start a broker of the set."""
    (tmp_path / "secret").write_text(SECRET)
    listener = ("--replication-listener", "127.0.0.1:0") if broker > 1 else ()
    settings = ("--set", "plain.enabled=false", "--set", "shards=3")
    shared = ("--secret-file", str(tmp_path / "secret"), *settings)
    member: Member = members(broker, *shared, *listener, *arguments, data=f"data-{broker}")
    return member


def until_follows(follower: Member) -> None:
    line = next_line(follower.process)
    assert line.startswith("faircopy follows, and waits for its leader on 127.0.0.1:"), follower.log
    follower.until_logged("following broker 1")


def missing(address: str) -> list[int]:
    """The followers that the leader misses."""
    return [
        each["broker"] for each in json.loads(run("replicas", "status", "--json", "-b", address))["missing"]
    ]


def test_what_three_brokers_have_acknowledged_outlives_the_leaders_disk(tmp_path: Path, members: Any) -> None:
    leader = begin(tmp_path, members, 1, "--new-set", "--replicas", "1,2,3")
    leader.until_logged("broker 1 leads replica set orders")
    followers = [begin(tmp_path, members, broker) for broker in (2, 3)]
    address = leader.until_ready()
    for follower in followers:
        until_follows(follower)
    for topic in ("kept", "gone"):
        run("topics", "create", topic, "--partitions", "3", "-b", address)
    (directory,) = (tmp_path / "data-2" / "journal").glob("gone.*")

    refused = faircopy("topics", "create", "table", "--set", "plain.enabled=true", "-b", address)
    assert "several replicas keep it" in refused.stderr

    # A follower that is away stops what is new, and what was accepted waits for it.
    producer = Producer({"bootstrap.servers": address, "transactional.id": "t"})
    plain = Producer({"bootstrap.servers": address})
    followers[1].end(signal.SIGKILL)
    plain.produce("kept", b"waits", partition=0)
    eventually(lambda: missing(address) == [3])
    leader.until_logged("broker 3 does not follow")
    assert plain.flush(0) == 1
    until_follows(begin(tmp_path, members, 3))
    eventually(lambda: missing(address) == [])
    assert plain.flush(60) == 0

    run("topics", "delete", "gone", "--yes", "-b", address)
    eventually(lambda: not directory.exists())

    producer.init_transactions(60)
    acked = [b"waits"]
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        values = [b"%d, %d" % (number, part) for part in range(3)]
        for part, value in enumerate(values):
            producer.produce("kept", value, partition=part)
        producer.commit_transaction(60)
        acked += values
    producer.begin_transaction()
    producer.produce("kept", b"never committed", partition=0)
    producer.flush(60)

    leader.end(signal.SIGKILL)
    shutil.rmtree(tmp_path / "data-1")
    followers[0].end(signal.SIGKILL)
    assert json.loads(run(*at_the_arbiter(tmp_path, "status", "--json")))["leader"] is None
    alone = BrokerProcess(tmp_path / "alone")
    (tmp_path / "alone").mkdir()
    alone.data_directory, alone.arguments = tmp_path / "data-2", ("--alone",)
    with alone:
        found = run("consume", "kept", "--from-beginning", "--exit", "-b", alone.address).splitlines()
    assert sorted(found) == sorted(value.decode() for value in acked)
    alone.arguments = ()
    with alone:  # it is no member any more
        run("topics", "list", "-b", alone.address)
    alone.ensure_no_traceback()
    for follower in followers:
        assert "Traceback" not in follower.log
    assert "Traceback" not in leader.log
