"""A broker is started on a directory with a plain table of an older faircopy: see `make_old_table`."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import deltalake
import pyarrow.compute as compute
import pyarrow.parquet as parquet
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from faircopy.publish.files import Files
from faircopy.publish.live_files import live_files
from faircopy.publish.schema import FORMAT
from tests.broker_process import BrokerProcess, environment, eventually
from tests.crash.test_plain_tables import assert_sound
from tests.crash.test_typed_tables import set_configs
from tests.upgrade.make_old_table import PARTITIONS, PUBLICATIONS, ROWS, SETTINGS, VALUE

HERE = Path(__file__).parent


def rows_of(table: Path) -> list[dict[str, Any]]:
    """The rows that batch reads find."""
    found = (parquet.ParquetFile(path).read() for path in live_files(Files(), table))
    return [row for each in found for row in each.to_pylist()]


def count_for_others(table: Path) -> set[int]:
    """How many rows there are for readers of the Delta log, and of the directory."""
    globbed = [parquet.ParquetFile(path).read().num_rows for path in table.glob("*.parquet")]
    listed = deltalake.DeltaTable(table).to_pyarrow_dataset()
    filtered = listed.count_rows(filter=compute.field("timestampType") >= 0)
    return {listed.count_rows(), filtered, sum(globbed)}


def keys_of(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return sorted((row["partition"], row["offset"]) for row in rows)


def relocate(table: Path) -> None:
    command = [sys.executable, "-m", "faircopy", "tables", "relocate", str(table)]
    subprocess.run(command, check=True, env=environment(), timeout=120, capture_output=True)


@pytest.mark.parametrize("version", [2, 3])
def test_an_old_table_goes_on(tmp_path: Path, version: int) -> None:
    """It gets rows and columns, rows of it are deleted, and all of that over another kill."""
    with tarfile.open(HERE / f"table_format_{version}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    table = tmp_path / "data" / "plain" / "orders"
    assert json.loads((table / "_faircopy.json").read_text())["format"] == version < FORMAT
    relocate(table)
    everything = [(partition, offset) for partition in range(PARTITIONS) for offset in range(ROWS)]
    with BrokerProcess(tmp_path, *SETTINGS) as broker:
        eventually(lambda: json.loads((table / "_faircopy.json").read_text())["format"] == FORMAT)
        rows = rows_of(table)
        assert keys_of(rows) == everything
        assert {row["value"] for row in rows} == {VALUE % number for number in range(PUBLICATIONS)}
        send(broker.address, 100)
        everything.append((0, ROWS))
        eventually(lambda: keys_of(rows_of(table)) == sorted(everything))
        set_configs(broker.address, "orders", plain_value_format="json", plain_schema="id bigint")
        broker.restart()
        send(broker.address, 101)
        everything.append((0, ROWS + 1))
        eventually(lambda: keys_of(rows_of(table)) == sorted(everything))
        found = {row["offset"]: row.get("id") for row in rows_of(table) if row["partition"] == 0}
        assert (found[ROWS + 1], found[0]) == (101, None)
        place = TopicPartition("orders", 0, 7)
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.delete_records([place])[place].result(60)
        broker.restart()
        left = sorted(key for key in everything if key[0] or key[1] >= place.offset)
        eventually(lambda: keys_of(rows_of(table)) == left)
        broker.stop()
        assert count_for_others(table) == {len(left)}
        assert_sound(broker)


def send(address: str, number: int) -> None:
    producer = Producer({"bootstrap.servers": address})
    producer.produce("orders", VALUE % number, partition=0)
    producer.flush(60)
