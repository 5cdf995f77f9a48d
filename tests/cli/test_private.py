"""What other users of the machine may read, and what runs in the broker's name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.broker_process import STOP_SECONDS, BrokerProcess, environment, eventually
from tests.child_process import next_line, start_child

PLANTED = "import pathlib; pathlib.Path({marker!r}).touch(); raise ImportError({name!r})"


def produce(address: str, count: int = 10) -> None:
    producer = Producer({"bootstrap.servers": address})
    for number in range(count):
        producer.produce("t", b"%d" % number, partition=0)
    assert producer.flush(60) == 0


def published(directory: Path) -> list[Path]:
    return sorted((directory / "plain" / "t").glob("*.parquet"))


def modes(directory: Path) -> dict[str, int]:
    """Permissions of a directory and of all in it, by name."""
    return {
        str(path.relative_to(directory)): path.stat().st_mode & 0o777
        for path in [directory, *directory.rglob("*")]
    }


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_nobody_else_may_read_anything(tmp_path: Path, mask: int) -> None:
    with umask(mask), BrokerProcess(tmp_path, "checkpoint.interval.ms=100") as broker:
        produce(broker.address)
        eventually(lambda: published(broker.data_directory))
        broker.restart(kill=False)
        produce(broker.address)
        found = modes(broker.data_directory)
    assert {"state.lmdb/data.mdb", "state.lmdb/lock.mdb", "format.json", "lock"} <= set(found)
    assert [name for name in found if name.endswith(".parquet")]
    assert {name: oct(mode) for name, mode in found.items() if mode & 0o077} == {}


def test_a_directory_that_others_can_read_is_closed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with BrokerProcess(tmp_path) as broker:
        for path in (data, data / "log", data / "plain"):
            path.chmod(0o755)
        broker.restart(kill=False)
        assert {oct(path.stat().st_mode & 0o777) for path in (data, data / "log", data / "plain")} == {
            "0o700"
        }
        assert f"{data} was open to other users (permissions 755)" in broker.log


@pytest.mark.parametrize(("readers", "root", "others"), [("group", 0o710, 0o050), ("everyone", 0o711, 0o055)])
def test_plain_tables_may_be_for_others(tmp_path: Path, readers: str, root: int, others: int) -> None:
    data = tmp_path / "data"
    with BrokerProcess(tmp_path, f"plain.readers={readers}") as broker:
        produce(broker.address)
        eventually(lambda: published(data))
        broker.stop()
        found = modes(data)
        directories = {name for name in found if (data / name).is_dir() and name.startswith("plain")}
    assert found["."] == root
    assert {oct(found[name]) for name in directories} == {oct(0o700 | others)}
    plain_files = {
        name for name in found if name.startswith("plain/") and not name.endswith("lock")
    } - directories
    assert {oct(found[name]) for name in plain_files} == {oct(0o600 | others & 0o044)}
    rest = {name: mode for name, mode in found.items() if name != "." and not name.startswith("plain")}
    assert {name: oct(mode) for name, mode in rest.items() if mode & 0o077} == {}
    with BrokerProcess(tmp_path) as broker:
        assert (data / "plain").stat().st_mode & 0o777 == 0o700


def test_nothing_is_imported_from_where_it_is_started(tmp_path: Path) -> None:
    """Not by the broker, and not by the publisher that it starts."""
    here, marker = tmp_path / "here", tmp_path / "planted code ran"
    here.mkdir()
    for name in ("pyarrow", "logging", "json", "uvloop", "lmdb", "faircopy"):
        (here / f"{name}.py").write_text(PLANTED.format(marker=str(marker), name=name))
    faircopy = Path(sys.executable).parent / "faircopy"
    command = [str(faircopy), "start", "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0"]
    process = start_child(command, stdout=subprocess.PIPE, env=environment(), cwd=here)
    assert process.stdout is not None
    try:
        produce(next_line(process).split()[-1])
        eventually(lambda: published(tmp_path / "data") or marker.exists())
        assert not marker.exists()
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)
        process.stdout.close()
