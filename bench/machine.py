"""The description of the machine in the results."""

from __future__ import annotations

import datetime
import os
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import confluent_kafka
import psutil

from faircopy import __version__

PACKAGES = ("confluent-kafka", "crc32c", "lmdb", "uvloop", "pyspark")


def about(profile: str, seed: int, directory: Path) -> dict[str, Any]:
    """Machine, versions and settings of a run; `directory` is where the brokers keep their data."""
    return {
        "profile": profile,
        "seed": seed,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "memory_bytes": psutil.virtual_memory().total,
            "system": f"{platform.system()} {platform.release()}",
            "file_system": file_system(directory),
            "disk_free_bytes": shutil.disk_usage(directory).free,
        },
        "versions": {
            "faircopy": __version__,
            "python": platform.python_version(),
            "librdkafka": confluent_kafka.libversion()[0],
            **{name: found for name in PACKAGES if (found := installed(name))},
        },
    }


def processor() -> str:
    """The processor's name, as reported by Linux."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def file_system(directory: Path) -> str:
    """The type of file system that holds a directory."""
    mounts = [
        mount
        for mount in psutil.disk_partitions(all=True)
        if directory.resolve().is_relative_to(mount.mountpoint)
    ]
    return max(mounts, key=lambda mount: len(mount.mountpoint)).fstype if mounts else ""


def installed(package: str) -> str | None:
    """The version of a package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
