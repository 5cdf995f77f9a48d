"""What is fetched appears whole or not at all, once, and where every checkout finds it."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.systems.cache import Dependency, Unavailable, Unreachable, cache
from bench.systems.maven import copy_dependencies
from tests.fetch.tries import PAUSES_SECONDS, fetch_all

Make = Callable[[Path], None]


@pytest.fixture(autouse=True)
def _cache_is_empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def pom(tmp_path: Path) -> Path:
    path = tmp_path / "pom.xml"
    path.write_text("version 1")
    return path


def nothing(_directory: Path) -> None:
    pass


def write_jar(directory: Path) -> None:
    (directory / "a.jar").write_text("jar")


def failing(errors: Iterator[Exception]) -> Make:
    """It writes a jar, and then raises one of these errors each time, until there are none left."""

    def make(directory: Path) -> None:
        assert list(directory.iterdir()) == []
        write_jar(directory)
        if (error := next(errors, None)) is not None:
            raise error

    return make


def test_what_was_fetched_is_found(pom: Path) -> None:
    wanted = Dependency("jars", (pom,), write_jar)
    with pytest.raises(Unavailable, match="jars is not there: run `make fetch`"):
        wanted.find()
    assert wanted.fetch() == wanted.find()
    assert (wanted.find() / "a.jar").read_text() == "jar"
    assert wanted.find().parent == cache()


def test_what_is_there_is_not_fetched_again(pom: Path) -> None:
    Dependency("jars", (pom,), write_jar).fetch()
    Dependency("jars", (pom,), failing(iter([Unavailable("again")]))).fetch()


def test_other_content_is_another_dependency(pom: Path) -> None:
    def directories() -> list[Path]:
        return [Dependency("jars", (pom,), nothing, ((*version,),)).directory for version in versions]

    versions = [("spark", "1"), ("spark", "2")]
    before = directories()
    assert before == directories()
    pom.write_text("version 2")
    assert len({*before, *directories()}) == 4


def test_what_failed_leaves_nothing(pom: Path) -> None:
    wanted = Dependency("jars", (pom,), failing(iter([Unavailable("no"), OSError("disk")])))
    for error in (Unavailable, OSError):
        with pytest.raises(error):
            wanted.fetch()
        assert [path.suffix for path in cache().iterdir()] == [".lock"]
    wanted.fetch()
    assert wanted.find().is_dir()


def test_what_a_killed_process_left_is_thrown_away(pom: Path) -> None:
    wanted = Dependency("jars", (pom,), write_jar)
    left = wanted.directory.with_name(f"{wanted.directory.name}.unfinished")
    left.mkdir(parents=True)
    (left / "half.jar").write_text("half")
    assert [path.name for path in wanted.fetch().iterdir()] == ["a.jar"]


def test_one_fetches_and_the_others_wait(pom: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, waits = list[int](), threading.Semaphore(0)
    lock = fcntl.flock

    def flock(*arguments: int) -> None:
        waits.release()
        lock(*arguments)

    def make(directory: Path) -> None:
        made.append(1)
        assert waits.acquire(timeout=60)  # by this one
        assert waits.acquire(timeout=60)  # by the other one
        write_jar(directory)

    monkeypatch.setattr(fcntl, "flock", flock)
    wanted = Dependency("jars", (pom,), make)
    threads = [threading.Thread(target=wanted.fetch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]
    assert wanted.find().is_dir()


# -- tries ---------------------------------------------------------------------------------------------------


def fetched(*dependencies: Dependency) -> tuple[list[str], list[str], list[float]]:
    """What is missing afterwards, what was said, and how long the pauses were."""
    said, pauses = list[str](), list[float]()
    missing = fetch_all(dependencies, said.append, pauses.append)
    return missing, said, pauses


def test_a_registry_that_fails_is_tried_again(pom: Path) -> None:
    errors: list[Exception] = [Unreachable("no answer"), Unreachable("reset")]
    missing, said, pauses = fetched(Dependency("jars", (pom,), failing(iter(errors))))
    assert missing == []
    assert pauses == list(PAUSES_SECONDS)
    assert said == [
        "jars: fetching",
        "jars: no answer; another try follows in 5 s",
        "jars: reset; another try follows in 20 s",
        "jars: fetched",
    ]


def test_what_cannot_be_had_is_said_and_the_others_are_fetched(pom: Path) -> None:
    never = Dependency("never", (pom,), failing(iter([Unreachable(f"{n}") for n in range(9)])))
    senseless = Dependency("senseless", (pom,), failing(iter([Unavailable("no mvn")])))
    full = Dependency("full", (pom,), failing(iter([OSError("disk")])))
    other = Dependency("other", (pom,), write_jar)
    missing, said, pauses = fetched(never, senseless, full, other)
    assert missing == ["never", "senseless", "full"]
    assert pauses == list(PAUSES_SECONDS)
    assert [line for line in said if "cannot" in line] == [
        "never: cannot be had: 2",
        "senseless: cannot be had: no mvn",
        "full: cannot be had: disk",
    ]
    assert said[-1] == "other: fetched"
    assert fetched(other)[1] == ["other: is there"]


def test_without_maven_no_try_helps(pom: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    jars = Dependency("jars", (pom,), lambda directory: copy_dependencies(pom, directory))
    missing, said, pauses = fetched(jars)
    assert (missing, pauses) == (["jars"], [])
    assert said[-1] == "jars: cannot be had: no mvn on PATH to fetch it from Maven Central"
