"""Who may hold the lock of a data directory for a moment after its broker was killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from faircopy.storage.data_directory import DataDirectory, hold_unchanged

# As a broker that starts its publisher, and is killed before that has become another program. What stands for
# the publisher goes on until nobody can write to its input any more.
BROKER = """
import os, sys
from pathlib import Path
from faircopy.storage.data_directory import DataDirectory

directory = DataDirectory(Path(sys.argv[1]))
if os.fork() == 0:
    sys.stdin.read()
    os._exit(0)
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def locked_by_a_remnant(directory: Path) -> Iterator[list[float]]:
    """A data directory right after its broker was killed. What it left ends when somebody waits for the lock.

    Yields the seconds that were waited.
    """
    command = [sys.executable, "-c", BROKER, str(directory)]
    waited: list[float] = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as broker:
        assert broker.stdin is not None and broker.stdout is not None
        stdin, stdout = broker.stdin, broker.stdout
        assert stdout.readline() == b"locked\n"
        broker.kill()

        def sleep(seconds: float) -> None:
            waited.append(seconds)
            stdin.close()
            assert stdout.read() == b""  # it has ended, and with it its lock

        with mock.patch("faircopy.storage.data_directory.time.sleep", sleep):
            yield waited


def test_the_next_broker_waits_for_it(tmp_path: Path) -> None:
    with locked_by_a_remnant(tmp_path) as waited:
        DataDirectory(tmp_path).close()
    assert len(waited) == 1


def test_a_check_waits_for_it(tmp_path: Path) -> None:
    with locked_by_a_remnant(tmp_path) as waited, hold_unchanged(tmp_path):
        pass
    assert len(waited) == 1
