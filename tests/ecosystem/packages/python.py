"""Foreign programs in Python: for each a virtual environment, and a file that pins what is in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.systems.cache import Dependency, Unreachable

PYTHON = Path(__file__).parents[1] / "python"
PROGRAMS = ("quix", "faust", "faststream", "bytewax", "celery", "arroyo", "pathway")
TIMEOUT_SECONDS = 600
RELEASE = f"{sys.version_info.major}.{sys.version_info.minor}"


def packages_of(program: str) -> Dependency:
    """What `python/<program>.txt` pins."""
    pinned = PYTHON / f"{program}.txt"
    return Dependency(
        f"python-{program}", (pinned,), lambda directory: install(pinned, directory), (("python", RELEASE),)
    )


PACKAGES = {program: packages_of(program) for program in PROGRAMS}
LARGE = PACKAGES["pathway"]


def install(pinned: Path, directory: Path) -> None:
    """Make an environment that has what a file pins, and nothing else. Raises Unavailable."""
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True, capture_output=True)
    command = [str(interpreter(directory)), "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(pinned)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        raise Unreachable(f"PyPI did not give it within {TIMEOUT_SECONDS} s") from None
    if run.returncode:
        said = run.stderr.strip().splitlines()
        raise Unreachable(f"pip could not install it: {said[-1] if said else 'it did not say why'}")


def interpreter(directory: Path) -> Path:
    """Python with the packages of an environment. Its scripts don't run: they know where it was made."""
    return directory / "bin" / "python"
