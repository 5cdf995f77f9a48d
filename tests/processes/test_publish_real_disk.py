"""A table on a real disk, with its locks between processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from faircopy.publish.drop import drop_table
from faircopy.publish.files import Files
from faircopy.publish.table import Table
from tests.unit.publish.published_log import GrowingLog
from tests.unit.publish.table_bench import GOOD, ORDERS, START_MS
from tests.unit.publish.table_reader import read_offsets


def in_another_process(attempt: str, directory: Path) -> str:
    """The errors that a program of one line gives there."""
    program = (
        "from pathlib import Path\n"
        "from faircopy.publish.drop import drop_table\n"
        "from faircopy.publish.files import Files\n"
        "from faircopy.publish.table import Table\n"
        f"directory = Path({str(directory)!r})\n{attempt}\n"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30).stderr


def test_on_a_real_disk(tmp_path: Path) -> None:
    """A second publisher is kept out; a path that a URI must escape; deleting."""
    files, directory = Files(), tmp_path / "plain" / "a b%ü"
    log = GrowingLog(files, tmp_path, [ORDERS])
    table = Table(files, directory, lambda: START_MS)
    for _ in range(20):
        log.append(ORDERS, GOOD, "7.0.1")
        assert table.publish(log.cut()).rows == 10
    for attempt in ("Table(Files(), directory, lambda: 0)", "drop_table(Files(), directory)"):
        assert "LockedError" in in_another_process(attempt, directory)
    table.close()
    assert in_another_process("Table(Files(), directory, lambda: 0).close()", directory) == ""
    assert read_offsets(files, directory) == {ORDERS: list(range(200))}
    drop_table(files, directory)
    assert list(directory.parent.iterdir()) == []
