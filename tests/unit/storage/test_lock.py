"""The lock of a data directory, and who may hold it for a moment after its broker is gone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from faircopy.storage.data_directory import DataDirectory, hold_unchanged

# As a broker that starts its publisher, and is killed before that has become another program.
BROKER = """
import os, sys, time
from pathlib import Path
from faircopy.storage.data_directory import DataDirectory

directory = DataDirectory(Path(sys.argv[1]))
if os.fork() == 0:
    os.close(1)
    time.sleep(0.3)
    os._exit(0)
print("locked", flush=True)
time.sleep(60)
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A data directory right after its broker was killed."""
    with subprocess.Popen([sys.executable, "-c", BROKER, str(tmp_path)], stdout=subprocess.PIPE) as broker:
        assert broker.stdout is not None
        assert broker.stdout.readline() == b"locked\n"
        broker.kill()
    return tmp_path


def test_the_next_broker_waits_for_it(directory: Path) -> None:
    DataDirectory(directory).close()


def test_a_check_waits_for_it(directory: Path) -> None:
    with hold_unchanged(directory):
        pass
