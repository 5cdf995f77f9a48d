"""The command line against a real broker, as its help says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from confluent_kafka import Producer

from faircopy.client import BlockingClient
from tests.broker_process import BrokerProcess, environment, eventually


class Cli:
    """Runs `faircopy` as a user does."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._environment = environment() | {"FAIRCOPY_BROKER": broker.address, "COLUMNS": "200"}

    def run(self, *arguments: str, stdin: str = "", code: int = 0) -> str:
        """What a command printed; fails unless it ends with this exit code."""
        command = [sys.executable, "-m", "faircopy", *arguments]
        run = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=120, env=self._environment
        )
        assert run.returncode == code, (run.returncode, run.stdout, run.stderr)
        return run.stdout + run.stderr

    def json(self, *arguments: str) -> Any:
        """What a command printed with --json."""
        return json.loads(self.run(*arguments, "--json"))


@pytest.fixture(scope="module")
def cli(broker: BrokerProcess) -> Cli:
    return Cli(broker)


def test_topics(cli: Cli) -> None:
    assert cli.json("topics", "create", "made", "-p", "3", "--set", "retention.ms=1000") == {
        "topic": "made",
        "partitions": 3,
    }
    assert "made" in [row["topic"] for row in cli.json("topics", "list")]
    assert "TOPIC_ALREADY_EXISTS" in cli.run("topics", "create", "made", code=1)
    described = cli.json("topics", "describe", "made")
    assert [row["partition"] for row in described["partitions"]] == [0, 1, 2]
    settings = {row["setting"]: (row["value"], row["own"]) for row in described["settings"]}
    assert settings["retention.ms"] == ("1000", True)
    assert settings["plain.enabled"] == ("true", False)
    assert "changed" in cli.run(
        "topics", "alter", "made", "-p", "5", "--set", "segment.bytes=65536", "--unset", "retention.ms"
    )
    described = cli.json("topics", "describe", "made")
    assert len(described["partitions"]) == 5
    settings = {row["setting"]: (row["value"], row["own"]) for row in described["settings"]}
    assert settings["segment.bytes"] == ("65536", True)
    assert settings["retention.ms"] == ("604800000", False)
    assert "known are" in cli.run("topics", "alter", "made", "--set", "no.such=1", code=1)
    assert "give delete or compact" in cli.run(
        "topics", "alter", "made", "--set", "cleanup.policy=keep", code=1
    )
    assert cli.json("topics", "delete", "made") == {"deleted": ["made"]}
    assert "UNKNOWN_TOPIC" in cli.run("topics", "describe", "made", code=1)


def test_a_compacted_topic_tells_its_price(cli: Cli) -> None:
    before = cli.json("status")
    cli.run("topics", "create", "state", "-p", "1", "--set", "cleanup.policy=compact")
    cli.run("topics", "create", "recent", "-p", "1", "--set", "cleanup.policy=compact,delete")
    for topic in ("state", "recent"):
        cli.run("produce", topic, stdin="some state\n")
    described = cli.json("topics", "describe", "state")
    assert described["never_deletes"] and not cli.json("topics", "describe", "recent")["never_deletes"]
    settings = {row["setting"]: (row["value"], row["own"]) for row in described["settings"]}
    assert settings["plain.enabled"] == ("false", False) and settings["cleanup.policy"] == ("compact", True)
    size = described["partitions"][0]["bytes"]
    told = f"all messages stay, since faircopy does not compact yet(?s:.*)That is {size} B by now"
    assert re.search(told, cli.run("topics", "describe", "state"))
    assert "messages stay" not in cli.run("topics", "describe", "recent")
    after = cli.json("status")
    assert after["kept_topics"] == before["kept_topics"] + 1
    assert after["kept_bytes"] == before["kept_bytes"] + size
    cli.run("topics", "delete", "state", "recent", "--yes")


def test_the_status_tells_of_the_catalogue(tmp_path: Path) -> None:
    """What the next start would have to read again, until there is a checkpoint."""
    with BrokerProcess(tmp_path, "checkpoint.interval.ms=3600000") as broker:
        cli = Cli(broker)
        ends = []
        for topic in ("one", "two"):
            cli.run("topics", "create", topic)
            about = cli.json("status")
            ends.append(about["catalogue_position"])
            assert about["catalogue_journal_bytes"] == about["catalogue_to_replay_bytes"] == ends[-1]
        assert 0 < ends[0] < ends[1]
        assert f"catalogue_to_replay_bytes\t{ends[1]}\n" in cli.run("status")
        broker.restart(kill=False)
        about = Cli(broker).json("status")
        assert about["catalogue_position"] == about["catalogue_journal_bytes"] == ends[1]
        assert about["catalogue_to_replay_bytes"] == 0


def test_produce_and_consume(cli: Cli) -> None:
    cli.run("topics", "create", "lines", "-p", "1")
    lines = "".join(f"k{n}:v{n}\n" for n in range(10))
    assert "10 message(s)" in cli.run("produce", "lines", "-K", ":", stdin=lines)
    printed = cli.run("consume", "lines", "--from-beginning", "--exit", "-f", "%t %p:%o %k=%s%%\\n")
    assert printed.splitlines()[3] == "lines 0:3 k3=v3%"
    assert cli.run("consume", "lines", "-o", "-2", "-e") == "v8\nv9\n"
    assert cli.run("consume", "lines", "--offset", "4", "--max", "1") == "v4\n"
    row = json.loads(cli.run("consume", "lines", "--from-beginning", "-n", "1", "--json"))
    assert (row["key"], row["value"], row["offset"]) == ("k0", "v0", 0)
    assert "no %q" in cli.run("consume", "lines", "-f", "%q", code=1)
    assert "Unknown topic" in cli.run("consume", "no-such-topic", code=1)


def test_produce_in_transactions(cli: Cli) -> None:
    arguments = ("produce", "committed", "--transactional-id", "cli/1", "--commit-every", "4", "--json")
    outcome = json.loads(cli.run(*arguments, stdin="".join(f"{n}\n" for n in range(10))))
    assert outcome == {"topic": "committed", "messages": 10, "transactions": 3}
    assert sorted(cli.run("consume", "committed", "--from-beginning", "-e").split()) == sorted(
        map(str, range(10))
    )
    assert "--transactional-id" in cli.run("produce", "committed", "--commit-every", "4", code=2)


def test_groups(cli: Cli) -> None:
    cli.run("topics", "create", "read", "-p", "2")
    cli.run("produce", "read", "-p", "0", stdin="a\nb\nc\n")
    assert cli.run("consume", "read", "--group", "readers", "--from-beginning", "--max", "3") == "a\nb\nc\n"
    assert {"group": "readers", "state": "Empty", "protocol": "consumer"} in cli.json("groups", "list")
    (row,) = [row for row in cli.json("groups", "describe", "readers")["offsets"] if row["partition"] == 0]
    assert (row["offset"], row["end"], row["lag"]) == (3, 3, 0)
    cli.run("groups", "reset", "readers", "-t", "read", "--to", "1", "-p", "0")
    assert cli.run("consume", "read", "--group", "readers", "--max", "2") == "b\nc\n"
    assert cli.json("groups", "delete", "readers") == {"deleted": "readers"}
    assert "readers" not in cli.run("groups", "list")


def test_an_open_transaction_is_shown_and_unstuck(cli: Cli, broker: BrokerProcess) -> None:
    cli.run("topics", "create", "stuck", "-p", "1")
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": "jobs/7", "log_level": 0})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("stuck", b"x" * 1000, partition=0)
    producer.flush(60)
    (row,) = [row for row in cli.json("txn", "list") if row["transactional_id"] == "jobs/7"]
    assert (row["state"], row["group"], row["partitions"], row["messages"]) == (
        "Ongoing",
        "jobs",
        ["stuck-0"],
        1,
    )
    assert row["journaled_bytes"] > 1000
    assert "faircopy txn abort jobs/7" in cli.run("txn", "describe", "jobs/7")
    assert cli.json("txn", "abort", "jobs/7")["was"] == "Ongoing"
    assert "jobs/7" not in cli.run("txn", "list")
    assert "CompleteAbort" in cli.run("txn", "list", "--all")
    assert cli.run("consume", "stuck", "--from-beginning", "-e") == ""
    assert "TRANSACTIONAL_ID_NOT_FOUND" in cli.run("txn", "describe", "no-such-id", code=1)


def test_joint_groups_are_shown_and_forgotten(cli: Cli, broker: BrokerProcess) -> None:
    cli.run("topics", "create", "loaded", "-p", "1")
    with BlockingClient(broker.address) as client:
        member = client.join("load", run="r", key=7, member="part 1")
        assert member is not None
        member.send("loaded", b"x")
        member.flush()
        (row,) = [row for row in cli.json("txn", "list") if row["group"] == "load"]
        assert "joint transaction" in cli.run("txn", "abort", row["transactional_id"], "--yes", code=1)
        assert "in use" in cli.run("txn", "forget-group", "load", "--yes", code=1)
        client.commit("load", run="r", key=7, members=[member])
    (row,) = [row for row in cli.json("txn", "groups") if row["group"] == "load"]
    assert (row["run"], row["committed_key"]) == ("r", 7)
    assert "load" in cli.run("txn", "groups")
    eventually(lambda: "load" not in cli.run("txn", "list"))
    assert cli.json("txn", "forget-group", "load") == {"group": "load"}
    assert "load" not in cli.run("txn", "groups")


def test_tables(cli: Cli) -> None:
    cli.run("topics", "create", "tabled", "-p", "1")
    cli.run("produce", "tabled", stdin="1\n2\n")
    rows = eventually(
        lambda: [
            row for row in cli.json("tables", "list") if (row["table"], row["published"]) == ("tabled", 2)
        ]
    )
    assert isinstance(rows, list)
    assert rows[0]["waiting"] == 0
    files = cli.json("tables", "files", rows[0]["directory"])
    assert sum(parquet.read_metadata(file).num_rows for file in files) == 2
    assert "locking" in cli.run("tables", "relocate", rows[0]["directory"], code=1)


def test_errors_are_one_line_and_say_what_to_do(cli: Cli) -> None:
    for arguments in (
        ("topics", "list"),
        ("groups", "list"),
        ("txn", "list"),
        ("consume", "t"),
        ("produce", "t"),
    ):
        printed = cli.run(*arguments, "--broker", "127.0.0.1:1", stdin="x\n", code=1)
        assert printed.startswith("faircopy: ")
        assert printed.count("\n") == 1
        assert "Traceback" not in printed
    assert "Usage" in cli.run("topics", "create", code=2)


def test_settings_are_listed(cli: Cli) -> None:
    settings = {row["setting"]: row for row in cli.json("settings")}
    assert settings["durability"]["default"] == "fsync"
    assert settings["durability"]["choices"] == ["fsync", "os"]
