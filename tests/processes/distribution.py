"""The distribution, built as for people: what it is made of, and environments that have nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

from tests.broker_process import environment
from tests.requirements import missing

ROOT = Path(__file__).parents[2]
MADE_OF = ("faircopy", "pyspark_faircopy.py", "pyproject.toml", "README.md", "LICENSE")
BUILD_SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"


class Built(NamedTuple):
    """A wheel, an sdist, and the folder with all that they need."""

    wheel: Path
    sdist: Path
    house: Path


def bare_environment() -> dict[str, str]:
    """The variables of this process, but those by which another installation would find this checkout."""
    return {name: value for name, value in environment().items() if name != "PYTHONPATH"}


def run(*command: str | Path, cwd: Path | None = None, path: Path | None = None) -> str:
    """Run a command in an environment of its own; `path` is where it finds more modules. Returns what it
    prints. Raises AssertionError with that if it fails.
    """
    variables = bare_environment() | ({"PYTHONPATH": str(path)} if path is not None else {})
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env=variables,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert not done.returncode, done.stdout
    return done.stdout


def pip(*arguments: str | Path) -> str:
    """Run pip. Raises AssertionError with what it says if it fails."""
    return run(sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments)


def build(folder: Path) -> Built:
    """Build wheel and sdist of this checkout. Only what they need comes from a registry; if it is away, the
    test that runs is skipped, or fails.
    """
    source, house, dist, tools = (folder / name for name in ("source", "house", "dist", "tools"))
    fetch(house)
    copy_to(source)
    offline = ("--no-index", "--find-links", house)
    pip("install", *offline, "--target", tools, "setuptools")
    dist.mkdir()
    run(sys.executable, "-c", BUILD_SDIST, dist, cwd=source, path=tools)
    pip("wheel", *offline, "--no-deps", "--wheel-dir", dist, source)
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    return Built(wheel, sdist, house)


def fetch(house: Path) -> None:
    """Bring wheels of the dependencies, and of what builds, in the versions that the tests are run with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    try:
        pip("wheel", "--constraint", ROOT / "constraints.txt", "--wheel-dir", house, *wanted)
    except AssertionError as error:
        missing(f"the dependencies can't be fetched: {error}")


def copy_to(source: Path) -> None:
    """Copy what is built, since building leaves files behind."""
    source.mkdir()
    for name in MADE_OF:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source)


def install(built: Path, house: Path, empty: Path) -> Path:
    """Install a wheel or an sdist into a new environment at `empty`; return the folder of its commands."""
    run(sys.executable, "-m", "venv", "--without-pip", empty)
    commands = empty / ("Scripts" if os.name == "nt" else "bin")
    pip("--python", commands / "python", "install", "--no-index", "--find-links", house, built)
    return commands


def bytes_in(directory: Path) -> int:
    """The size of all files below a directory."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
