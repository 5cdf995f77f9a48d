"""The distribution is `faircopy-broker`; the command and the import are `faircopy`. On PyPI, `faircopy` is
somebody else's package, and ours is not there yet: nothing tells people to install either by its name.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from faircopy import __version__
from faircopy.publish.arrow import REMEDY

ROOT = Path(__file__).parents[2]
TEXTS = {".md", ".py", ".sh", ".toml", ".txt", ".xml", ".yaml", ".yml"}
NAMED = {"Makefile", "run"}
UNTRACKED = (".", "__", "build", "dist", "faircopy-data", "spark-warehouse", "metastore_db")
BY_NAME = re.compile(
    r"(?:pip3? install|uv add|uv tool install|uv tool run|uvx|pipx install|pipx run|poetry add|conda install)"
    r"(?:\s+-\S+)*\s+[`'\"]*faircopy(?:-broker)?\b(?![/_])"
    r"|\bfaircopy(?:-broker)?\["
)
WHEEL = re.compile(r"faircopy_broker-(\d[\d.]*)-py3")


def texts() -> Iterator[Path]:
    """All files of the checkout that people read, except this one."""
    for directory, below, files in os.walk(ROOT):
        below[:] = [
            name for name in below if name == ".ci" or not name.startswith((".", "__", "build", "dist"))
        ]
        paths = (Path(directory, name) for name in files)
        yield from (path for path in paths if is_read(path))


def is_read(path: Path) -> bool:
    return path != Path(__file__) and (path.suffix in TEXTS or path.name in NAMED)


def installed_by_name(text: str) -> list[str]:
    """Where a text says to install what is not ours, or not there."""
    return [match.group() for match in BY_NAME.finditer(text)]


@pytest.mark.parametrize(
    "command",
    [
        "pip install faircopy", "pip install -U 'faircopy[spark]'", "pip install faircopy-broker",
        "uvx faircopy", "uv add faircopy", "pipx install faircopy", "`faircopy[etcd]`",
        "pip3 install --user faircopy",
    ],
)  # fmt: skip
def test_an_install_by_name_is_found(command: str) -> None:
    assert installed_by_name(f"First, {command} and go on.")


@pytest.mark.parametrize(
    "command",
    [
        "pip install .", "pip install '.[spark]'", "pip install faircopy/", "faircopy start",
        f"dist/faircopy_broker-{__version__}-py3-none-any.whl[spark]",
    ],
)  # fmt: skip
def test_an_install_from_a_checkout_or_a_wheel_is_right(command: str) -> None:
    assert not installed_by_name(command)


def test_nothing_is_installed_by_name() -> None:
    found = {str(path.relative_to(ROOT)): installed_by_name(path.read_text()) for path in texts()}
    assert {path: commands for path, commands in found.items() if commands} == {}


def test_wheels_that_are_named_are_of_this_version() -> None:
    versions = {version for path in texts() for version in WHEEL.findall(path.read_text())}
    assert versions == {__version__}


def test_the_distribution_has_a_name_of_its_own_and_the_version_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["name"] == "faircopy-broker"
    assert project["project"]["scripts"] == {"faircopy": "faircopy.cli.main:main"}
    assert project["project"]["entry-points"] == {"pytest11": {"faircopy": "pytest_faircopy"}}
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "faircopy.__version__"}


def test_pyarrow_is_an_extra() -> None:
    """It is larger than all else together. Whoever asks for tables, Spark or the demo gets it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {
        extra
        for extra, wanted in project["optional-dependencies"].items()
        if any(each.startswith("pyarrow>=18") for each in wanted)
    }
    assert not [each for each in project["dependencies"] if each.startswith("pyarrow")]
    assert extras == {"tables", "spark", "demo", "test", "bench"}
    assert "'pyarrow>=18'" in REMEDY


def test_a_wheel_has_the_product_alone() -> None:
    """No tests, no benchmark, no demo."""
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert setuptools["packages"]["find"] == {"include": ["faircopy*"]}
    assert setuptools["py-modules"] == ["pyspark_faircopy", "pytest_faircopy"]
