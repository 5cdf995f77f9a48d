"""Commands on a topic with a stopped partition: they say that it is, and still serve the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner, Result

from faircopy.cli import consume, produce
from faircopy.cli.main import cli
from tests.rot.flips import Flip, flip_for_good
from tests.rot.made import Made

ADVICE = "stopped by the broker: orders-1. Files there are damaged"


class Commands:
    """Runs commands that ask the broker of a directory in which orders-1 is stopped."""

    def __init__(self, address: str, made: Made) -> None:
        self._address = address
        self.made = made

    def run(self, *arguments: str, code: int = 0, stdin: str = "") -> Result:
        result = CliRunner().invoke(cli, [*arguments, "--broker", self._address], input=stdin)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    def failure(self, *arguments: str, stdin: str = "") -> tuple[bytes, str]:
        """What was printed, and why the command ended with code 1."""
        result = self.run(*arguments, code=1, stdin=stdin)
        return result.stdout_bytes, result.stderr or str(result.exception)


@pytest.fixture
def commands(
    stopped: Made, copy_of: Callable[[Made], Made], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Commands]:
    monkeypatch.setattr(consume, "SILENCE_SECONDS", 0.5)
    monkeypatch.setattr(produce, "FLUSH_SECONDS", 3.0)
    made = copy_of(stopped)
    (path,) = made.files("log", "orders", 1)
    flip_for_good(path, Flip(100, 1))
    with made.broker() as broker:
        commands = Commands(broker.address, made)
        commands.failure("consume", "orders", "-p", "1", "--from-beginning", "--exit")
        yield commands


def test_topics_are_shown(commands: Commands) -> None:
    shown = {row["topic"]: row for row in json.loads(commands.run("topics", "list", "--json").stdout)}
    content = commands.made.content
    assert shown["orders"] == {
        "topic": "orders",
        "partitions": 2,
        "stopped": 1,
        "messages": len(content["orders", 0]),
    }
    assert shown["audit"]["stopped"] == 0
    sound, damaged = json.loads(commands.run("topics", "describe", "orders", "--json").stdout)["partitions"]
    assert (sound["stopped"], sound["messages"]) == (False, len(content["orders", 0]))
    assert (damaged["stopped"], damaged["end_offset"], damaged["messages"]) == (True, None, None)
    assert "yes" in commands.run("topics", "describe", "orders").stdout


def test_the_rest_is_read_before_it_is_said(commands: Commands) -> None:
    printed, reason = commands.failure("consume", "orders", "--from-beginning", "--exit", "-f", "%p %S\\n")
    assert ADVICE in reason
    assert printed.decode().splitlines() == [
        f"0 {len(message)}" for message in commands.made.content["orders", 0]
    ]
    commands.run("consume", "orders", "-p", "0", "--from-beginning", "--exit")


def test_a_member_of_a_group_is_told(commands: Commands) -> None:
    assert (
        ADVICE in commands.failure("consume", "orders", "--group", "readers", "--from-beginning", "--exit")[1]
    )


def test_a_writer_is_told(commands: Commands) -> None:
    assert ADVICE in commands.failure("produce", "orders", "-p", "1", stdin="more\n")[1]
    assert (
        ADVICE
        in commands.failure("produce", "orders", "-p", "1", "--transactional-id", "w/1", stdin="more\n")[1]
    )
    commands.run("produce", "orders", "-p", "0", stdin="more\n")


def test_offsets_of_groups(commands: Commands) -> None:
    """Some can be set where nothing need be asked, and the lag is not known."""
    assert ADVICE in commands.failure("groups", "reset", "g", "-t", "orders", "--to", "latest", "--new")[1]
    commands.run("groups", "reset", "g", "-t", "orders", "--to", "earliest", "-p", "0", "--new")
    commands.run("groups", "reset", "g", "-t", "orders", "--to", "0", "-p", "1")
    offsets = json.loads(commands.run("groups", "describe", "g", "--json").stdout)["offsets"]
    assert [(row["partition"], row["lag"]) for row in offsets] == [
        (0, len(commands.made.content["orders", 0])),
        (1, None),
    ]
