"""Random writes, checkpoints and reopens of a catalogue, compared with a dict."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircopy.storage.versioned_map import ABSENT, Conflict, Versioned
from tests.unit.catalogue.opened import Opened, run

SEGMENT_BYTES = 400
RIGHT, OLD, NEW = "right", "old", "new"


class Write(NamedTuple):
    """What one writer expects of some keys, and changes; None deletes."""

    expected: Mapping[str, str]
    changes: Mapping[str, bytes | None]


CHECKPOINT = "checkpoint"
KEYS = st.sampled_from(["a", "b", "ab", "ü"])
EXPECTED = st.dictionaries(KEYS, st.sampled_from([RIGHT] * 6 + [OLD, NEW]), max_size=3)
CHANGES = st.dictionaries(KEYS, st.none() | st.sampled_from([b"", b"1", b"2", b"long" * 30]), max_size=3)
AT_ONCE = st.lists(st.builds(Write, EXPECTED, CHANGES) | st.just(CHECKPOINT), max_size=5)
LIVES = st.lists(st.lists(AT_ONCE, max_size=4), min_size=1, max_size=4)


class Model:
    """What the catalogue should hold, and which versions each key had."""

    def __init__(self) -> None:
        self.map: dict[str, Versioned] = {}
        self._had: dict[str, list[int]] = {}

    def version(self, key: str, which: str) -> int:
        """The version that this writer expects of a key."""
        found = self.map.get(key)
        right = found.version if found is not None else ABSENT
        old = [version for version in self._had.get(key, [ABSENT]) if version != right]
        return right if which == RIGHT or (which == OLD and not old) else old[-1] if which == OLD else 1 << 40

    def write(self, expected: Mapping[str, int], write: Write, version: int) -> bool:
        """Write if nothing is in the way."""
        if any(self.version(key, RIGHT) != wanted for key, wanted in expected.items()):
            return False
        for key, value in write.changes.items():
            self._had.setdefault(key, [ABSENT]).append(version)
            if value is None:
                self.map.pop(key, None)
            else:
                self.map[key] = Versioned(value, version)
        return True


async def at_once(opened: Opened, model: Model, jobs: list[Write | str]) -> None:
    """Begin all jobs, then wait for them. Each has the outcome that the model has."""
    marks = opened.catalogue.journal.watermarks
    tasks: list[asyncio.Task[Any]] = []
    outcomes: list[Any] = []
    for job in jobs:
        if isinstance(job, Write):
            version = marks.appended
            expected = {key: model.version(key, which) for key, which in job.expected.items()}
            is_written = model.write(expected, job, version)
            outcomes.append(version if is_written else Conflict)
            tasks.append(asyncio.ensure_future(opened.catalogue.transact(expected, job.changes)))
        else:
            outcomes.append(None)
            tasks.append(asyncio.ensure_future(opened.catalogue.checkpoint()))
        await asyncio.sleep(0)
    found: list[Any] = await asyncio.gather(*tasks, return_exceptions=True)
    assert [Conflict if isinstance(each, Conflict) else each for each in found] == outcomes
    ensure_equal(opened, model)


def ensure_equal(opened: Opened, model: Model) -> None:
    """The catalogue reads as the model does, all at once and key by key."""
    assert list(opened.contents.items()) == sorted(model.map.items())
    assert {key: opened.catalogue.get(key) for key in "ab"} == {key: model.map.get(key) for key in "ab"}


@settings(max_examples=60, deadline=None)
@given(lives=LIVES)
def test_each_life_finds_what_the_ones_before_have_written(
    tmp_path_factory: pytest.TempPathFactory, lives: list[list[list[Write | str]]]
) -> None:
    path: Path = tmp_path_factory.mktemp("catalogue")

    async def test() -> None:
        model = Model()
        for life in lives:
            with Opened(path, SEGMENT_BYTES) as opened:
                ensure_equal(opened, model)
                for jobs in life:
                    await at_once(opened, model, jobs)
        with Opened(path, SEGMENT_BYTES) as opened:
            ensure_equal(opened, model)

    run(test)
