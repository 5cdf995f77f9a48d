"""`faircopy journal show` tells the life of a topic, which the catalogue's journal holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from faircopy.catalogue.journal import CATALOGUE_IDENTITY, catalogue_directory
from faircopy.cli.main import cli
from faircopy.journal.entry import Kind
from tests.broker_process import BrokerProcess
from tests.fuzz.journals import Writer, segment_files

TOPIC = "topics/orders"
SETTING = ConfigEntry("retention.ms", "60000", incremental_operation=AlterConfigOpType.SET)


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalogue's journal in which a topic was made, changed, grown, deleted and made again."""
    directory = tmp_path_factory.mktemp("lived")
    with BrokerProcess(directory, "plain.enabled=false") as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        changed = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=[SETTING])
        steps: list[Any] = [
            lambda: admin.create_topics([NewTopic("orders", 2), NewTopic("audit", 1)]),
            lambda: admin.incremental_alter_configs([changed]),
            lambda: admin.create_partitions([NewPartitions("orders", 4)]),
            lambda: admin.delete_topics(["orders"]),
            lambda: admin.create_topics([NewTopic("orders", 3)]),
        ]
        for step in steps:
            for done in step().values():
                done.result(60)
        broker.kill()
    return catalogue_directory(broker.data_directory / "journal")


def run(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["journal", "show", *map(str, arguments)])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def rows(*arguments: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(*arguments, "--json").stdout)
    return found


def test_each_write_says_what_it_rests_on(lived: Path) -> None:
    shown = rows(lived)
    assert {row["kind"] for row in shown} == {"CHANGE"}
    assert [row["position"] for row in shown[1:]] == [row["position"] + row["bytes"] for row in shown[:-1]]
    founding = shown[0]["says"]
    assert founding["rests_on"] == {"shape": -1}
    assert founding["set"]["shape"]["shards"] == 1
    assert len(founding["set"]["cluster-id"]) == 22
    assert any("topics/audit" in row["says"].get("set", {}) for row in shown)


def test_the_life_of_a_topic(lived: Path) -> None:
    made, changed, grown, deleted, again = rows(lived, "--key", TOPIC)
    says = [row["says"] for row in (made, changed, grown, deleted, again)]
    versions = [-1, made["position"], changed["position"], grown["position"], -1]
    assert [each["rests_on"] for each in says] == [{TOPIC: version} for version in versions]
    topics = [each.get("set", {}).get(TOPIC) for each in says]
    assert [topic and topic["partitions"] for topic in topics] == [2, 2, 4, None, 3]
    assert [topic and topic["configs"] for topic in topics[:2]] == [{}, {"retention.ms": "60000"}]
    assert says[3] == {"rests_on": {TOPIC: grown["position"]}, "deleted": [TOPIC]}
    assert topics[0]["id"] == topics[2]["id"] != topics[4]["id"]


def test_people_read_it_in_a_line_a_write(lived: Path) -> None:
    at = [row["position"] for row in rows(lived, "--key", TOPIC)]
    heading, *lines = run(lived, "--key", TOPIC).stdout.splitlines()
    assert heading == "\t".join(rows(lived)[0]).replace("\tfile", "")
    said = [line.split("\t")[-1] for line in lines]
    assert said[0].startswith(f'{TOPIC} (new) = {{"configs": {{}}, ')
    assert said[2].startswith(f"{TOPIC} (was {at[1]}) = ") and '"partitions": 4' in said[2]
    assert said[3] == f"{TOPIC} (was {at[2]}) deleted"
    assert said[4].startswith(f"{TOPIC} (new) = ")
    assert not any("audit" in each or "doomed" in each for each in said)
    assert f"{TOPIC} (was {at[2]}) deleted" in run(lived, "--from", at[3], "--limit", 1).stdout


def test_the_limit_counts_what_is_shown(lived: Path) -> None:
    """The other keys' entries before it and between do not count."""
    at = [row["position"] for row in rows(lived, "--key", TOPIC)]
    few = run(lived, "--key", TOPIC, "--limit", 2)
    assert few.stdout.count("\n") == 3 and f"--from {at[2]}" in few.stderr
    assert [row["position"] for row in rows(lived, "--key", TOPIC, "--from", at[2])] == at[2:]


def test_a_key_that_nobody_has_written(lived: Path) -> None:
    assert rows(lived, "--key", "topics/other") == []
    assert "no entries" in run(lived, "--key", "topics/other").output
    assert "exclude each other" in run(lived, "--key", TOPIC, "--transaction", "1.0.1", code=2).output


@pytest.mark.parametrize(
    "payload", [b"", b"[]", b'{"set": {"k": 1}}', b'{"rests_on": [], "set": {"k": "v"}}']
)
@pytest.mark.parametrize("kind", [Kind.CHANGE, Kind.COMMITTED, Kind.TRIM])
def test_an_entry_that_nobody_can_read(tmp_path: Path, payload: bytes, kind: int) -> None:
    """A fault of a broker has written it: this is who looks for it, so it is shown, and all around it."""
    path, writer = tmp_path / "00000000000000000000.journal", Writer()
    for each in ((Kind.CHANGE, b'{"set":{"k":"v"}}'), (kind, payload), (Kind.CHANGE, b'{"deleted":["k"]}')):
        writer.add(*each)
    (content,) = segment_files(writer.written, CATALOGUE_IDENTITY).values()
    path.write_bytes(content)
    first, _, last = rows(path)
    assert (first["says"], last["says"]) == ({"set": {"k": "v"}}, {"deleted": ["k"]})
    assert len(run(path).stdout.splitlines()) == 4
    assert len(rows(path, "--key", "k")) == 2
    if kind == Kind.CHANGE:
        assert "unreadable=" in run(path).stdout.splitlines()[2]
