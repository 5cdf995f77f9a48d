"""A check by hand: `pip install '.[spark]'` is all that Spark needs to find `format("faircopy")`.

    python -m tests.spark.installed

It builds a wheel from a copy of this checkout, installs it with its extra into a new environment, and lets
Spark write and read there, in a batch and in a stream, without pandas and without registering anything. It is
no test of the suite, since it downloads PySpark. Java is found as for the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from demo.java import java_home

ROOT = Path(__file__).parents[2]
SOURCES = ("faircopy", "pyspark_faircopy.py", "pyproject.toml", "README.md", "LICENSE")
SCRIPT = """
import importlib.util, subprocess, sys, tempfile
assert importlib.util.find_spec("pandas") is None
from pyspark.sql import SparkSession
data = tempfile.mkdtemp(dir=sys.argv[1])
command = [sys.executable, "-m", "faircopy", "start", "--listen", "127.0.0.1:0", "--data-dir", data]
broker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
servers = {"kafka.bootstrap.servers": broker.stdout.readline().split()[-1]}
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.range(1000).selectExpr("cast(id as string) value")
rows.write.format("faircopy").mode("append").options(topic="a", **servers).save()
stream = spark.readStream.format("faircopy").options(subscribe="a", startingOffsets="earliest", **servers)
writer = stream.load().select("value").writeStream.format("faircopy").options(topic="b", **servers)
writer = writer.option("checkpointLocation", sys.argv[1] + "/checkpoint").trigger(availableNow=True)
writer.start().awaitTermination()
count = spark.read.format("faircopy").options(subscribe="a,b", **servers).load().count()
spark.stop()
broker.terminate()
broker.wait()
assert count == 2000, count
"""


def main() -> None:
    """Build, install, and let Spark write and read."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "sources").mkdir()
        for source in SOURCES:
            copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
            copy(ROOT / source, directory / "sources" / source)
        subprocess.run([sys.executable, "-m", "venv", directory / "venv"], check=True)
        python = str(directory / "venv" / "bin" / "python")
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        environment |= {"JAVA_HOME": str(java_home(directory)), "PYSPARK_PYTHON": python}
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        requirement = f"{directory / 'sources'}[spark]"
        for command in (["-m", "pip", "install", "-q", requirement], ["-c", SCRIPT, name]):
            subprocess.run([python, *command], check=True, cwd=directory, env=environment)
    print("Spark found faircopy by itself")


if __name__ == "__main__":
    main()
