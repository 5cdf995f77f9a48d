"""What commands print: for people, for programs, for nobody; and nothing that a client has smuggled in."""

from __future__ import annotations

import base64
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from faircopy.api.produce.produce import SCHEMA as PRODUCE
from faircopy.client.connection import BrokerConnection
from faircopy.wire.records import NewRecord, build_batch, with_crc
from tests.broker_process import BrokerProcess, environment

EVIL = "\x1b[31mred\x1b[0m[red]x[/red]\ttab\nline\u202e"
SHOWN = "\\x1b[31mred\\x1b[0m[red]x[/red]\\ttab\\nline\\u202e"


# -- commands ------------------------------------------------------------------------------------------------


class Cli:
    """Runs `faircopy` with its output in a pipe, or on a terminal."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.address = broker.address
        self.environment = environment() | {"FAIRCOPY_BROKER": broker.address, "TERM": "xterm"}

    def run(self, *arguments: str, code: int = 0) -> tuple[str, str]:
        """What a command said on standard output and standard error."""
        command = [sys.executable, "-m", "faircopy", *arguments]
        run = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            env=self.environment,
        )
        assert run.returncode == code, (run.returncode, run.stdout, run.stderr)
        return run.stdout, run.stderr

    def on_terminal(self, *arguments: str, typed: str = "", code: int = 0, width: int = 400) -> str:
        """All that a command shows on a terminal."""
        with self.terminal() as (ours, theirs):
            command = [sys.executable, "-m", "faircopy", *arguments]
            environment = self.environment | {"COLUMNS": str(width)}
            process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
            os.close(theirs)
            os.write(ours, typed.encode())
            shown = b"".join(iter(lambda: read_terminal(ours), b""))
            assert process.wait(60) == code, shown
        return shown.decode()

    @contextmanager
    def terminal(self) -> Iterator[tuple[int, int]]:
        ours, theirs = pty.openpty()
        try:
            yield ours, theirs
        finally:
            os.close(ours)

    def rows(self, *arguments: str) -> list[dict[str, str]]:
        """The lines with tabs that a command printed, by their columns."""
        names, *lines = [line.split("\t") for line in self.run(*arguments)[0].splitlines()]
        return [dict(zip(names, line, strict=True)) for line in lines]


def read_terminal(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # as a terminal ends
        return b""


@pytest.fixture(scope="module")
def cli(broker: BrokerProcess) -> Cli:
    return Cli(broker)


def test_a_table_in_a_pipe_is_neither_folded_nor_cut(cli: Cli) -> None:
    name = "long." + "x" * 200
    cli.run("topics", "create", name, "-p", "2")
    assert {"topic": name, "partitions": "2", "stopped": "0", "messages": "0"} in cli.rows("topics", "list")
    printed, said = cli.run("topics", "describe", name)
    partitions, settings = printed.split("\n\n")
    assert partitions.splitlines()[0] == "partition\tstopped\tfirst_offset\tend_offset\tmessages\tbytes"
    assert len(partitions.splitlines()) == 3
    assert all(line.count("\t") == 3 for line in settings.splitlines())
    assert said == f"topic {name}\n"
    on_terminal = re.sub("\x1b\\[[0-9;]*m", "", cli.on_terminal("topics", "list", width=60))
    assert max(map(len, on_terminal.splitlines())) == 60


def test_no_rows_are_no_lines(cli: Cli) -> None:
    printed, said = cli.run("txn", "list")
    assert printed == ""
    assert said == "no transaction is running\n"


def test_names_of_clients_are_shown_and_not_obeyed(cli: Cli) -> None:
    cli.run("topics", "create", "hostile", "-p", "1")
    producer = Producer({"bootstrap.servers": cli.address, "transactional.id": EVIL, "log_level": 0})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("hostile", b"x", partition=0)
    producer.flush(60)
    consumer = Consumer(
        {"bootstrap.servers": cli.address, "group.id": EVIL, "client.id": EVIL, "log_level": 0}
    )
    consumer.subscribe(["hostile"])
    while not consumer.assignment():
        consumer.poll(0.1)
    consumer.commit(offsets=[TopicPartition("hostile", 0, 0)], asynchronous=False)
    for arguments in (
        ("groups", "list"), ("groups", "describe", EVIL), ("txn", "list"), ("txn", "describe", EVIL),
    ):  # fmt: skip
        printed, said = cli.run(*arguments)
        assert SHOWN in printed + said, arguments
        shown = cli.on_terminal(*arguments)
        for text in (printed, said, shown):
            assert "\x1b[31m" not in text and "\u202e" not in text, arguments
        assert "[red]x[/red]" in shown.replace("\r\n", ""), arguments
    _, said = cli.run("topics", "create", EVIL, code=1)
    assert "\x1b[31m" not in said and said.count("\n") == 1
    _, said = cli.run("groups", "delete", "--yes", EVIL, code=1)  # it has a member
    assert SHOWN in said
    consumer.close()
    producer.abort_transaction(60)


def batch_with(header: bytes) -> bytes:
    """A batch of one message, with a header of this name."""
    batch = build_batch([NewRecord(b"value", b"key", 1_000, (("N" * len(header), b"v"),))])
    return with_crc(batch.replace(b"N" * len(header), header))


def test_messages_as_json_are_what_they_were(cli: Cli) -> None:
    cli.run("topics", "create", "binary", "-p", "1")
    values = [b"text", "\u00e9".encode(), b"\\xff", b"\xff", b"", None, bytes(range(256))]
    producer = Producer({"bootstrap.servers": cli.address, "linger.ms": 0})
    for value in values:
        producer.produce("binary", value, key=value, partition=0, headers=[("h", value), ("i", b"1")])
    producer.flush(60)
    lines = cli.run("consume", "binary", "--from-beginning", "-n", str(len(values)), "--json")[0].splitlines()
    for line, value in zip(lines, values, strict=True):
        row = json.loads(line)
        assert decoded(row, "value") == decoded(row, "key") == decoded(row["headers"][0], "value") == value
        assert [header["name"] for header in row["headers"]] == ["h", "i"]
    raw = cli.run("consume", "binary", "-o", "0", "-n", "3", "-f", "%s|")[0]
    assert raw == "text|\u00e9|\\xff|"


def decoded(row: dict[str, Any], name: str) -> bytes | None:
    value = row[name]
    if row.get(f"{name}_encoding") == "base64":
        return base64.b64decode(value)
    assert f"{name}_encoding" not in row
    return None if value is None else str(value).encode()


def test_names_of_headers_may_be_any_bytes(cli: Cli) -> None:
    """Often: with each message that confluent-kafka is asked about, it destroys some memory."""
    cli.run("topics", "create", "headers", "-p", "1")
    many = 50
    with BrokerConnection(cli.address) as connection:
        for _ in range(many):
            data = [{"name": "headers", "partition_data": [{"index": 0, "records": batch_with(b"\xffx")}]}]
            body = {"acks": -1, "timeout_ms": 1_000, "transactional_id": None, "topic_data": data}
            assert connection.ask(PRODUCE, 7, body).responses[0].partition_responses[0].error_code == 0
    for group in ((), ("--group", "readers")):
        read = ("consume", "headers", "--from-beginning", "-n", str(many), *group)
        rows = [json.loads(line) for line in cli.run(*read, "--json")[0].splitlines()]
        assert [row["value"] for row in rows] == ["value"] * many
        assert [row["headers"] for row in rows] == [[{"name": "\ufffdx", "value": "v"}]] * many
    shown = cli.run("consume", "headers", "--from-beginning", "-n", str(many), "-f", "%h ")[0]
    assert shown == "\ufffdx=v " * many


def test_a_terminal_gets_messages_escaped(cli: Cli) -> None:
    cli.run("topics", "create", "escapes", "-p", "1")
    producer = Producer({"bootstrap.servers": cli.address})
    producer.produce("escapes", b"\x1b[2Jx", partition=0)
    producer.flush(60)
    assert cli.run("consume", "escapes", "--from-beginning", "-n", "1")[0] == "\x1b[2Jx\n"
    assert "\\x1b[2Jx" in cli.on_terminal("consume", "escapes", "--from-beginning", "-n", "1")


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", "describe", "nope"),
        ("topics", "alter", "nope", "--set", "retention.ms=1"),
        ("topics", "alter", "nope", "-p", "3"),
        ("topics", "delete", "nope"),
        ("topics", "delete", "nope", "--yes"),
        ("groups", "describe", "nope"),
        ("groups", "delete", "nope"),
        ("groups", "reset", "nope", "-t", "there", "--to", "earliest"),
        ("groups", "reset", "nope", "-t", "not-there", "--to", "earliest", "--new"),
        ("txn", "describe", "nope"),
        ("txn", "abort", "nope"),
    ],
)
def test_what_is_not_there_is_told_before_any_question(cli: Cli, arguments: tuple[str, ...]) -> None:
    cli.run("topics", "list")
    printed, said = cli.run(*arguments, code=1)
    assert printed == ""
    assert "there is none; faircopy" in said
    assert said.count("\n") == 1
    assert "there is none; faircopy" in cli.on_terminal(*arguments, code=1).replace("\r\n", "")


def test_if_one_topic_is_not_there_none_is_deleted(cli: Cli) -> None:
    cli.run("topics", "create", "kept", "-p", "1")
    assert (
        "topic 'nope', 'nor': there is none"
        in cli.run("topics", "delete", "kept", "nope", "nor", "--yes", code=1)[1]
    )
    assert "kept" in [row["topic"] for row in cli.rows("topics", "list")]


def test_offsets_of_partitions_that_are_not_there(cli: Cli) -> None:
    cli.run("topics", "create", "reset", "-p", "2")
    cli.run("groups", "reset", "made", "-t", "reset", "--to", "7", "-p", "1", "--new")
    assert [row["offset"] for row in cli.rows("groups", "describe", "made")] == ["7"]
    said = cli.run("groups", "reset", "made", "-t", "reset", "--to", "7", "-p", "2", code=1)[1]
    assert "has partitions 0 to 1, not 2" in said


def test_questions_need_a_terminal(cli: Cli) -> None:
    cli.run("topics", "create", "asked", "-p", "1")
    printed, said = cli.run("topics", "delete", "asked", code=1)
    assert printed == ""
    assert "answer with --yes" in said
    assert "delete asked with all messages?" in cli.on_terminal(
        "topics", "delete", "asked", typed="n\n", code=130
    )
    assert "asked" in [row["topic"] for row in cli.rows("topics", "list")]
    assert "deleted asked" in cli.on_terminal("topics", "delete", "asked", typed="y\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("consume", "read-by-nobody", "--from-beginning", "--exit"),
        ("consume", "read-by-nobody", "--from-beginning", "--json"),
        ("topics", "list"),
        ("topics", "describe", "read-by-nobody", "--json"),
        ("settings",),
    ],
)
def test_a_closed_pipe_is_no_error(cli: Cli, arguments: tuple[str, ...]) -> None:
    topics = cli.run("topics", "list")[0]
    if "read-by-nobody" not in topics:
        cli.run("topics", "create", "read-by-nobody", "-p", "1")
        producer = Producer({"bootstrap.servers": cli.address})
        for number in range(10_000):
            producer.produce("read-by-nobody", b"%d" % number * 10, partition=0)
        producer.flush(60)
    command = [sys.executable, "-m", "faircopy", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=cli.environment)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    with process.stderr as errors:
        assert errors.read() == b""
    assert process.wait(60) == 141
