"""The distribution as people get it: built, installed where nothing else is, and started."""

from __future__ import annotations

import signal
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from faircopy.publish.arrow import OFF
from tests.broker_process import STOP_SECONDS
from tests.child_process import next_line, start_child
from tests.processes.distribution import ROOT, Built, bare_environment, build, bytes_in, install, run

BYTES_MAX = 100 << 20
HEAVY = ("pyarrow", "numpy", "pandas", "pyspark")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The distribution."""
    return build(tmp_path_factory.mktemp("built"))


def modules() -> set[str]:
    """What must be there: every module of the product."""
    found = (ROOT / "faircopy").rglob("*.py")
    return {str(path.relative_to(ROOT)) for path in found} | {"pyspark_faircopy.py", "faircopy/py.typed"}


def test_a_wheel_has_every_module_and_nothing_else(built: Built) -> None:
    names = zipfile.ZipFile(built.wheel).namelist()
    assert {name for name in names if ".dist-info/" not in name} == modules()


def test_an_sdist_has_what_a_wheel_is_built_from(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert modules() | {"pyproject.toml", "README.md", "LICENSE"} <= names


@contextmanager
def started(commands: Path, folder: Path) -> Iterator[str]:
    """`faircopy start` of an environment; gives its address. It ends in order."""
    command = [str(commands / "faircopy"), "start", "--data-dir", str(folder / "data")]
    with (folder / "log").open("w") as log:
        broker = start_child(
            [*command, "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=log,
            env=bare_environment(),
            cwd=folder,
        )
    assert broker.stdout is not None
    try:
        yield next_line(broker).split()[-1]
    finally:
        broker.send_signal(signal.SIGTERM)
        code = broker.wait(STOP_SECONDS)
        broker.stdout.close()
    assert not code


def produce(commands: Path, address: str, lines: str) -> None:
    """`faircopy produce` of these lines, in one transaction."""
    command = [str(commands / "faircopy"), "produce", "t", "--transactional-id", "a/1", "--broker", address]
    subprocess.run(command, input=lines, text=True, check=True, env=bare_environment(), capture_output=True)


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_it_runs_where_nothing_else_is(built: Built, kind: str, tmp_path: Path) -> None:
    commands = install(getattr(built, kind), built.house, tmp_path / "env")
    library = Path(
        run(commands / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    )
    assert not [name for name in HEAVY if (library / name).exists()]
    assert bytes_in(library) < BYTES_MAX
    with started(commands, tmp_path) as address:
        produce(commands, address, "one\ntwo\nthree\n")
        consume = (commands / "faircopy", "consume", "t", "--from-beginning", "--exit", "--broker", address)
        assert sorted(run(*consume).split()) == ["one", "three", "two"]
    assert OFF in (tmp_path / "log").read_text()
    assert "all as it should be" in run(commands / "faircopy", "verify", tmp_path / "data")
