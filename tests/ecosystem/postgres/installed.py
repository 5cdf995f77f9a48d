"""PostgreSQL and its driver for Java, from Maven Central by a pom of ours."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

from bench.systems.maven import jars_of

HERE = Path(__file__).parent
POSTGRES = jars_of("postgres", HERE / "pom.xml")
JAVA = HERE / "java"
PROGRAM = "SqlSession"
ARCHIVE = "embedded-postgres-binaries-*.jar"


def unpack(jars: Path, directory: Path) -> None:
    """Put PostgreSQL's programs, with all that they need, into a directory."""
    (jar,) = jars.glob(ARCHIVE)
    with zipfile.ZipFile(jar) as whole:
        (name,) = (name for name in whole.namelist() if name.endswith(".txz"))
        with whole.open(name) as packed, tarfile.open(fileobj=packed, mode="r:xz") as archive:
            archive.extractall(directory, filter="data")
