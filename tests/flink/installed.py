"""Flink with its connector to Kafka, from Maven Central by a pom of ours, and our program, compiled."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.systems.maven import jars_of, java

HERE = Path(__file__).parent
FLINK = jars_of("flink", HERE / "pom.xml")
JAVA = HERE / "java"
PROGRAM = "CopyJob"
COMPILER = "org.eclipse.jdt.internal.compiler.batch.Main"  # of the jars: a runtime of Java has none
RELEASE = "17"
COMPILE_SECONDS_MAX = 300.0


@dataclass(frozen=True)
class Installed:
    """What it takes to run the program; `classes` holds what was compiled and the configuration of logs."""

    java: Path
    jars: Path
    classes: Path

    @property
    def class_path(self) -> str:
        """As Java's option -cp takes it."""
        return f"{self.classes}:{self.jars}/*"


def compiled(classes: Path) -> Installed:
    """Compile the program into a directory that exists. Raises Unavailable without Java or Flink's jars, and
    RuntimeError if it can't be compiled.
    """
    installed = Installed(java(), FLINK.find(), classes)
    jars = ":".join(map(str, sorted(installed.jars.glob("*.jar"))))  # the compiler knows no *
    command = [str(installed.java), "-cp", f"{installed.jars}/*", COMPILER, "-source", RELEASE]
    command += [
        "-target",
        RELEASE,
        "-classpath",
        jars,
        "-d",
        str(classes),
        *map(str, sorted(JAVA.glob("*.java"))),
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS_MAX)
    if run.returncode:
        raise RuntimeError(f"{PROGRAM} can't be compiled:\n{run.stdout}{run.stderr}")
    logs = JAVA / "simplelogger.properties"
    (classes / logs.name).write_bytes(logs.read_bytes())
    return installed
