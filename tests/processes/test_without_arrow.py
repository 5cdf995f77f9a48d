"""A broker and a command line without pyarrow: all but plain tables, which go on once it is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as parquet
from confluent_kafka import Producer

from faircopy.publish.files import Files
from faircopy.publish.live_files import NoTableError, live_files
from tests.broker_process import BrokerProcess, environment, eventually

WITHOUT = ("tests.processes.without", "pyarrow")
REMEDY = "pip install 'pyarrow>=18'"
IMPORTS = """
import sys
before = set(sys.modules)
sys.modules["pyarrow"] = None
import pkgutil, importlib, faircopy
for module in pkgutil.walk_packages(faircopy.__path__, "faircopy."):
    if module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except ImportError as error:
        print(module.name)
"""
SPARK = """
import sys
sys.modules["pyarrow"] = None
from faircopy.spark.data_source import FaircopyDataSource
FaircopyDataSource({})
"""
OF_VERIFY = {f"faircopy.verify.{name}" for name in ("log_rows", "parquet_damage", "plain_tables")}


def test_who_imports_it() -> None:
    """The publisher, Spark's parts, and what `faircopy verify` loads where there are tables."""
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", IMPORTS], capture_output=True, text=True)
    assert not run.returncode, run.stderr
    others = {name for name in run.stdout.split() if name.split(".")[1] not in ("publish", "spark")}
    assert others == OF_VERIFY


def test_sparks_source_says_what_it_needs() -> None:
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", SPARK], capture_output=True, text=True)
    assert f'NoArrow: format("faircopy") needs pyarrow, which is not installed: {REMEDY}' in run.stderr


def faircopy(*arguments: str, code: int = 0) -> str:
    """What the command line prints without pyarrow."""
    command = [sys.executable, "-m", *WITHOUT, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert run.returncode == code, run.stderr
    return run.stdout + run.stderr


def commit(broker: BrokerProcess, name: str) -> None:
    """A transaction of three messages."""
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": name})
    producer.init_transactions(60)
    producer.begin_transaction()
    for number in range(3):
        producer.produce("t", f"{name}:{number}", partition=0)
    producer.commit_transaction(60)


def published(broker: BrokerProcess) -> list[str]:
    """The values of the table's rows; none while the table is being dropped."""
    try:
        files = live_files(Files(), broker.data_directory / "plain" / "t")
        return [value.decode() for path in files for value in parquet.read_table(path)["value"].to_pylist()]
    except (NoTableError, FileNotFoundError):
        return []


def has_published(broker: BrokerProcess, *names: str) -> None:
    """Wait for the rows of these transactions, each once."""
    rows = [f"{name}:{number}" for name in names for number in range(3)]
    eventually(lambda: published(broker) == rows)


def test_tables_wait_until_it_is_there(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, "plain.interval.ms=50")
    broker.program = WITHOUT
    with broker:
        assert f"plain tables are off, since pyarrow is not installed: {REMEDY}" in broker.log
        commit(broker, "first")
        assert REMEDY in faircopy("tables", "list", "--broker", broker.address, code=1)
        asked = ("topics", "create", "asked", "--broker", broker.address, "--set", "plain.enabled=true")
        assert REMEDY in faircopy(*asked, code=1)
        broker.program = ("faircopy",)
        broker.restart()
        has_published(broker, "first")
        broker.program = WITHOUT
        broker.restart()
        commit(broker, "second")
        broker.restart()
        assert published(broker) == ["first:0", "first:1", "first:2"]
        broker.program = ("faircopy",)
        broker.restart()
        has_published(broker, "first", "second")
        broker.ensure_no_traceback()


def test_a_table_goes_with_its_topic_once_it_is_there(tmp_path: Path) -> None:
    """Its name is free at once, and what is published then is of the new topic."""
    with BrokerProcess(tmp_path, "plain.interval.ms=50") as broker:
        commit(broker, "first")
        has_published(broker, "first")
        broker.program = WITHOUT
        broker.restart()
        faircopy("topics", "delete", "t", "--yes", "--broker", broker.address)
        commit(broker, "second")
        broker.program = ("faircopy",)
        broker.restart()
        has_published(broker, "second")


def test_what_can_not_be_checked_is_said(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "plain.interval.ms=50") as broker:
        commit(broker, "first")
        has_published(broker, "first")
    assert "not checked" in (told := faircopy("verify", str(broker.data_directory), code=1))
    assert REMEDY in told and "1 finding" in told
    table = str(broker.data_directory / "plain" / "t")
    assert "d-" in faircopy("tables", "files", table)
    assert REMEDY in faircopy("tables", "relocate", table, code=1)


def test_a_directory_without_tables_is_checked(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, "plain.enabled=false")
    broker.program = WITHOUT
    with broker:
        commit(broker, "first")
    assert "pyarrow" not in broker.log
    assert "all as it should be" in faircopy("verify", str(broker.data_directory))
