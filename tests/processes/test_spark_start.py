"""What planning and committing load: Spark starts a process for each, and the first query waits for them."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("numpy", "pandas", "pyarrow")
SCRIPT = """
import sys
import pyspark.sql.worker.commit_data_source_write
before = set(sys.modules)
import pyspark_faircopy
print(*sorted(set(sys.modules) - before))
"""


def test_only_tasks_load_arrow() -> None:
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT], capture_output=True, text=True)
    assert not run.returncode, run.stderr
    loaded = run.stdout.split()
    assert "faircopy.spark.sink" in loaded
    assert not [name for name in loaded if name.partition(".")[0] in HEAVY]
