"""Apicurio Registry, from Maven Central by a pom of ours, unpacked."""

from __future__ import annotations

import tarfile
from pathlib import Path

from bench.systems.cache import Dependency
from bench.systems.maven import copy_artifacts

POM = Path(__file__).parent / "pom.xml"
RUNNER = "apicurio-registry-app-*-runner.jar"


def unpack(directory: Path) -> None:
    """Fetch the archive, and put what is in it into a directory. Raises Unavailable."""
    copy_artifacts(POM, directory)
    (path,) = directory.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        archive.extractall(directory, filter="data")
    path.unlink()


APICURIO = Dependency("apicurio", (POM,), unpack)
