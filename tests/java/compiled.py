"""A folder of Java, compiled against jars by a compiler among them: a runtime of Java has none."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.systems.cache import Dependency
from bench.systems.maven import java

COMPILER = "org.eclipse.jdt.internal.compiler.batch.Main"
RELEASE = "17"
COMPILE_SECONDS_MAX = 300.0


@dataclass(frozen=True)
class Installed:
    """What it takes to run a program; `classes` holds what was compiled and the configuration of logs."""

    java: Path
    jars: Path
    classes: Path

    @property
    def class_path(self) -> str:
        """As Java's option -cp takes it."""
        return f"{self.classes}:{self.jars}/*"


def compiled(jars: Dependency, sources: Path, classes: Path) -> Installed:
    """Compile a folder into a directory that exists. Raises Unavailable without Java or the jars, and
    RuntimeError if it can't be compiled.
    """
    installed = Installed(java(), jars.find(), classes)
    run = subprocess.run(
        command(installed, sources), capture_output=True, text=True, timeout=COMPILE_SECONDS_MAX
    )
    if run.returncode:
        raise RuntimeError(f"{sources} can't be compiled:\n{run.stdout}{run.stderr}")
    for properties in sources.glob("*.properties"):
        (classes / properties.name).write_bytes(properties.read_bytes())
    return installed


def command(installed: Installed, sources: Path) -> list[str]:
    """What compiles all that is in the folder."""
    jars = ":".join(map(str, sorted(installed.jars.glob("*.jar"))))  # the compiler knows no *
    files = map(str, sorted(sources.glob("*.java")))
    compiler = [str(installed.java), "-cp", f"{installed.jars}/*", COMPILER]
    return [
        *compiler,
        *("-source", RELEASE, "-target", RELEASE),
        *("-classpath", jars),
        *("-d", str(installed.classes)),
        *files,
    ]
