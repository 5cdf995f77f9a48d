"""A backup of a broker under load, restored: real clients, and the checker."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.backup.as_of import as_of
from tests.broker_process import BrokerProcess
from tests.checker.check import check
from tests.checker.history import Final, Operation, Result, Transaction
from tests.clients.litter import WARNINGS_OF_OTHERS, collected
from tests.clients.talk import create_topic
from tests.finding import a_finding_if_not
from tests.seeds import seed_for
from tests.soak.ending import read_all, whole_table
from tests.soak.processes import ClientProcess
from tests.soak.record import read_recorded
from tests.soak.stage import LIBRARIES, TABLE, TABLE_TOPICS, TOPICS, now

__all__ = ["collected"]  # a fixture
pytestmark = [pytest.mark.filterwarnings(warning) for warning in WARNINGS_OF_OTHERS]

SETTINGS = (
    "journal.segment.bytes=1048576",
    "topic.segment.bytes=65536",
    "checkpoint.bytes=65536",
    "checkpoint.interval.ms=500",
    "transaction.abort.interval.ms=200",
    "group.min.session.timeout.ms=500",
    "plain.interval.ms=500",
)
COMMITS = 60  # of all clients, before each backup


def faircopy(*words: str | Path) -> dict[str, Any]:
    """What a command says, as JSON."""
    command = [sys.executable, "-m", "faircopy", *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


async def load(clients: Sequence[ClientProcess], commits: int) -> None:
    """Return when so many more transactions have committed, and one or more have aborted."""
    before = ended(clients)
    while (more := ended(clients) - before)["ok"] < commits or not more["failed"]:
        assert all(client.is_running for client in clients)
        await asyncio.sleep(0.1)


def ended(clients: Sequence[ClientProcess]) -> Counter[str]:
    return sum((client.ended for client in clients), Counter[str]())


async def sealed_files(data_directory: Path) -> None:
    """Return when a log has a file that does not change any more."""
    while not any(len(list(log.glob("*.log"))) > 1 for log in (data_directory / "log").glob("*/*")):
        await asyncio.sleep(0.1)


async def under_load(
    broker: BrokerProcess, directory: Path, backups: Path
) -> list[tuple[float, float, Path]]:
    """Make two backups while clients of all libraries work.

    Returns for each when it was asked for, when it was made, and where it is.
    """
    chosen = random.Random(seed_for("backup under load"))
    clients = [
        ClientProcess(directory, library, int(broker.address.rsplit(":", 1)[1])) for library in LIBRARIES
    ]
    made = []
    try:
        for client in clients:
            await client.start(chosen.getrandbits(48))
        for _ in range(2):
            await load(clients, COMMITS)
            await sealed_files(broker.data_directory)
            asked = now()
            outcome = await asyncio.to_thread(faircopy, "backup", backups, "--broker", broker.address)
            made.append((asked, now(), Path(outcome["path"])))
        assert outcome["kept_bytes"] > 0, "the second backup takes over what has not changed"
        await load(clients, COMMITS // 10)
        await asyncio.gather(*(client.end(signal.SIGTERM) for client in clients))
    finally:
        for client in clients:
            await client.close()
    return made


def read_restored(data_directory: Path, directory: Path) -> list[Operation]:
    """What a broker on a restored directory tells."""
    directory.mkdir()
    restored = BrokerProcess(directory, *SETTINGS)
    restored.data_directory = data_directory
    operations: list[Operation] = []
    with restored:
        for number, library in enumerate(LIBRARIES.values()):
            isolation = ("read_committed", "read_uncommitted")[number % 2]
            operations += read_all(library, restored.address, isolation)
        finals = [each for each in operations if isinstance(each, Final)][: sum(TOPICS.values())]
        operations.append(whole_table(data_directory, finals))
        assert "is stopped" not in restored.log
        restored.ensure_no_traceback()
    return operations


def test_a_backup_under_load(tmp_path: Path) -> None:
    backups = tmp_path / "backups"
    with BrokerProcess(tmp_path, *SETTINGS) as broker:
        for topic, partitions in TOPICS.items():
            plain = {"plain_table": TABLE} if topic in TABLE_TOPICS else {"plain_enabled": "false"}
            create_topic(broker.address, topic, partitions, **plain)
        made = asyncio.run(under_load(broker, tmp_path, backups))
        assert not (broker.data_directory / "snapshot").exists()
    recorded = read_recorded(sorted(tmp_path.glob("*.history")))
    for number, (asked, answered, path) in enumerate(made):
        data_directory = tmp_path / f"restored-{number}"
        faircopy("restore", path, data_directory)
        history = list(as_of(recorded, asked, answered))
        assert count(history, Result.OK) > 20
        assert count(history, Result.FAILED) > 0
        checked = check([*history, *read_restored(data_directory, tmp_path / f"broker-{number}")])
        with a_finding_if_not():
            assert checked.verdict.value == "valid", checked


def count(history: list[Operation], result: Result) -> int:
    return sum(isinstance(each, Transaction) and each.result is result for each in history)
