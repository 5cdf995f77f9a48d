"""`faircopy verify`, `journal show` and `log show`, as a person and a program see them."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from faircopy.cli.main import cli
from faircopy.errors import FaircopyError
from faircopy.storage.data_directory import DataDirectory
from faircopy.storage.state_store import StateStore
from faircopy.verify import plain_tables
from faircopy.verify.journal_entries import open_to_show, shown_entries
from tests.rot.flips import Flip, flipped
from tests.rot.made import Made, topics_of

Copy = Callable[[Made], Made]


def run(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, list(map(str, arguments)))
    assert result.exit_code == code, (result.output, result.exception)
    return result


def rows(*arguments: object, code: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(*arguments, "--json", code=code).stdout)
    return found


def topic_id(made: Made, name: str) -> str:
    store = StateStore.open_to_read(made.data / "state.lmdb")
    try:
        return topics_of(store)[name].id.hex
    finally:
        store.close()


# -- verify --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stopped", "killed"])
def test_a_directory_that_is_as_it_should_be(request: pytest.FixtureRequest, name: str) -> None:
    made: Made = request.getfixturevalue(name)
    before = {path: path.read_bytes() for path in made.data.rglob("*") if path.is_file()}
    assert "all as it should be" in run("verify", made.data).output
    assert rows("verify", made.data) == []
    assert {path: path.read_bytes() for path in made.data.rglob("*") if path.is_file()} == before


def test_findings_name_file_and_byte(stopped: Made) -> None:
    (path,) = stopped.files("log", "orders", 0)
    with flipped(path, Flip(100, 1)):
        (row,) = [row for row in rows("verify", stopped.data, code=1) if row["file"] == str(path)]
        assert row == {"file": str(path), "byte": 0, "what": "record batch does not match its CRC"}
        table = run("verify", stopped.data, code=1).output
    assert f"log/{path.parent.parent.name}/0/{path.name}" in table
    assert "finding" in table


def test_without_its_state_store_the_rest_is_still_looked_at(stopped: Made, copy_of: Copy) -> None:
    made = copy_of(stopped)
    store = made.data / "state.lmdb" / "data.mdb"
    store.write_bytes(store.read_bytes()[:10_000])
    journal, log = made.files("journal", "orders", 1)[0], made.files("log", "audit", 0)[0]
    for path, byte in ((journal, 90), (log, 90)):
        content = bytearray(path.read_bytes())
        content[byte] ^= 1
        path.write_bytes(content)
    found = {Path(row["file"]) for row in rows("verify", made.data, code=1)}
    assert {store, journal, log} <= found
    store.unlink()
    assert store in {Path(row["file"]) for row in rows("verify", made.data, code=1)}


def test_what_verify_refuses(stopped: Made, copy_of: Copy, tmp_path: Path) -> None:
    made = copy_of(stopped)
    directory = DataDirectory(made.data)
    with pytest.raises(FaircopyError, match="in use by another broker"):
        CliRunner().invoke(cli, ["verify", str(made.data)], catch_exceptions=False, standalone_mode=False)
    directory.close()
    (tmp_path / "other").mkdir()
    with pytest.raises(FaircopyError, match="not a faircopy data directory"):
        CliRunner().invoke(
            cli, ["verify", str(tmp_path / "other")], catch_exceptions=False, standalone_mode=False
        )


def test_a_broker_waits_for_the_check(stopped: Made, copy_of: Copy) -> None:
    """Nothing is changed under it: a broker does not start meanwhile."""
    from faircopy.storage.data_directory import hold_unchanged

    made = copy_of(stopped)
    with hold_unchanged(made.data), hold_unchanged(made.data), pytest.raises(FaircopyError, match="in use"):
        DataDirectory(made.data)
    DataDirectory(made.data).close()


def test_a_publisher_is_waited_for(stopped: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a killed broker goes on for a moment: what it has just begun is no damage."""
    monkeypatch.setattr(plain_tables, "PATIENCE_SECONDS", 0.2)
    lock = stopped.data / "plain" / "audit" / "_faircopy.lock"
    hold = (
        "from faircopy.publish.files import Files; from pathlib import Path; "
        f"x = Files().lock(Path({str(lock)!r}))"
    )
    command = [sys.executable, "-c", f"{hold}; print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as publisher:
        assert publisher.stdout is not None and publisher.stdin is not None
        publisher.stdout.readline()
        (row,) = rows("verify", stopped.data, code=1)
        assert row["file"] == str(lock) and "still running" in row["what"]
        monkeypatch.setattr(plain_tables, "PATIENCE_SECONDS", 20)
        publisher.stdin.write("\n")
        publisher.stdin.flush()
        assert rows("verify", stopped.data) == []


# -- journal show --------------------------------------------------------------------------------------------


def test_a_journal_is_shown(stopped: Made) -> None:
    directory = stopped.files("journal", "orders", 0)[0].parent
    shown = rows("journal", "show", directory, "--limit", 1000)
    assert {row["kind"] for row in shown} == {"DRAFT", "PREPARED", "APPLY", "DISCARD", "PLAIN"}
    assert [row["position"] for row in shown[1:]] == [row["position"] + row["bytes"] for row in shown[:-1]]
    assert rows("journal", "show", directory / Path(shown[0]["file"]).name, "--limit", 1000) == shown
    few = run("journal", "show", directory, "--limit", 3, "--from", shown[2]["position"])
    assert few.stdout.count("\n") == 4 and f"--from {shown[5]['position']}" in few.stderr
    assert "previous" in few.stdout.splitlines()[0]


def test_shared_journals_are_shown(stopped: Made) -> None:
    kinds: dict[str, Any] = {}
    for topic in ("_metadata", "__consumer_offsets"):
        (path,) = (stopped.data / "journal" / topic).glob("*/*.journal")
        for row in rows("journal", "show", path, "--limit", 1000):
            kinds.setdefault(row["kind"], row)
    assert kinds["BEGIN"]["says"]["id"] in ("orders/1", "open/1")
    says = kinds["PLAIN"]["says"]
    assert (says["group"], list(says["offsets"].values())) == ("group", [3])
    assert [name.removesuffix("-0") for name in says["offsets"]] == [topic_id(stopped, "audit")]


def test_one_transaction_is_followed(stopped: Made) -> None:
    """I3: from its end back along `previous`; the file alone is enough, as far as the list is in it."""
    first, second = stopped.files("journal", "bulk", 0)[:2]
    drafts = [each for each in shown_entries(open_to_show(first)) if each.transaction is not None]
    name = str(drafts[0].transaction)
    (draft,) = rows("journal", "show", first, "--transaction", name)
    assert (draft["kind"], draft["previous"]) == ("DRAFT", None)
    assert rows("journal", "show", second, "--transaction", name) == []
    directory = stopped.files("journal", "orders", 1)[0].parent
    prepared = [row for row in rows("journal", "show", directory, "-n", 1000) if row["kind"] == "PREPARED"]
    walked = rows("journal", "show", directory, "-t", prepared[-1]["transaction"])
    assert [row["kind"] for row in walked][:2] in (["APPLY", "PREPARED"], ["DISCARD", "PREPARED"])
    assert [row["position"] for row in walked[2:]] == [row["previous"] for row in walked[1:-1]]
    assert "is not like" in run("journal", "show", directory, "-t", "7.0", code=2).output


def test_a_damaged_journal_is_shown_up_to_the_damage(stopped: Made) -> None:
    path = stopped.files("journal", "orders", 0)[0]
    third = list(shown_entries(open_to_show(path)))[2]
    with flipped(path, Flip(third.byte + 70, 4)):
        result = run("journal", "show", path, code=1)
    assert result.stdout.count("\n") == 3
    assert f"damaged at byte {third.byte}" in result.stderr


# -- log show ------------------------------------------------------------------------------------------------


def test_a_log_is_shown(stopped: Made) -> None:
    directory = stopped.files("log", "orders", 0)[0].parent
    batches = rows("log", "show", directory, "--limit", 1000)
    assert [row["offset"] for row in batches[1:]] == [row["last"] + 1 for row in batches[:-1]]
    messages = rows("log", "show", directory, "--records", "--limit", 1000)
    assert [row["offset"] for row in messages] == list(range(len(stopped.content["orders", 0])))
    assert all(
        stopped.content["orders", 0][row["offset"]].startswith(row["value"][:50].encode()) for row in messages
    )
    assert {tuple(row["headers"]) for row in messages} == {(), ("h=v",)}
    assert run("log", "show", directory, "--limit", 2).stdout.count("\n") == 3


def test_a_damaged_log_is_shown_up_to_the_damage(stopped: Made, chance: random.Random) -> None:
    (path,) = stopped.files("log", "orders", 0)
    third = rows("log", "show", path)[2]
    with flipped(path, Flip(third["byte"] + chance.randrange(third["bytes"]), 1)):
        result = run("log", "show", path, code=1)
    assert result.stdout.count("\n") == 3
    assert f"at byte {third['byte']:,}" in result.stderr
