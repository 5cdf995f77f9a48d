"""Each target with the kept corpus and with inputs by hypothesis; test_campaigns.py has atheris."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import __main__ as command
from tests.fuzz import broker
from tests.fuzz.campaign import CORPUS
from tests.fuzz.choices import Choices
from tests.fuzz.memory import edited
from tests.fuzz.seeds.__main__ import FOUND
from tests.fuzz.seeds.by_target import seeds_of
from tests.fuzz.seeds.files import EDITS
from tests.fuzz.targets import TARGETS
from tests.peak_memory import takes_less_than

CORPUS_FILES_MAX = 400
CORPUS_BYTES_MAX = 1 << 20
TRACED_BYTES_MAX = 64 << 20

COMPRESSED = {"record-batches", "decompression", "columns"}  # another version may compress otherwise
ODD_LINES = {"odd-drop", "odd-open", "odd-opened", "odd-publish", "odd-tidy"}
REFUSED = {
    "decompression": {"gzip-bomb", "zstd-bomb"},
    "journal-files": {"copy", "flip", "overwrite"},
    "catalogue-entries": {"conflict", "long-key"},
    "log-files": {"a-file-is-missing", *EDITS} - {"none"},
    "state-file": {"newest-head", "older-head", *EDITS} - {"none"},
    "format-file": {"before", "odd"},
    "table-state": {"odd"},
    "footers": {"odd-held"},
    "delta-log-directory": {"checkpoint-is-missing", "a-gap"},
    "json-values": {"null", "two-for-one", "odd"},
    "table-schema": {"unknown-type"},
    "publisher-lines": ODD_LINES,
    "settings": {"toml-odd"},
}
"""The seeds that the product is to refuse. All others it takes, so that what is made of them gets far."""

INPUTS = [path for target in TARGETS for path in sorted((CORPUS / target).iterdir())]


@pytest.fixture(scope="module", autouse=True)
def _no_broker_is_left() -> Iterator[None]:
    """The broker of this process ends with this module."""
    yield
    if broker.world.cache_info().currsize:
        broker.world().close()
        broker.world.cache_clear()


# -- the kept corpus -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_kept_input_passes(path: Path) -> None:
    feed, content = TARGETS[path.parent.name].load(), path.read_bytes()
    assert takes_less_than(TRACED_BYTES_MAX, lambda: feed(content), path.name)


@pytest.mark.parametrize("target", TARGETS)
def test_the_seeds_are_those_that_the_product_writes(target: str) -> None:
    kept = {
        path.name: path.read_bytes()
        for path in (CORPUS / target).iterdir()
        if not path.name.startswith(FOUND)
    }
    written = list(seeds_of(target))
    assert sorted(name for name, _ in written) == sorted(kept)
    if target not in COMPRESSED:
        assert dict(written) == kept


@pytest.mark.parametrize("target", TARGETS)
def test_the_seeds_get_past_the_door(target: str) -> None:
    """What is refused early finds nothing behind it."""
    feed = TARGETS[target].load()
    assert {name for name, content in seeds_of(target) if not feed(content)} == REFUSED.get(target, set())


def test_the_corpus_is_small_and_of_targets_only() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
    assert len(INPUTS) <= CORPUS_FILES_MAX
    assert sum(path.stat().st_size for path in INPUTS) <= CORPUS_BYTES_MAX


# -- hypothesis ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_inputs_that_hypothesis_makes(target: str, data: st.DataObject) -> None:
    """Any bytes, and kept inputs with edits."""
    kept = [path for path in INPUTS if path.parent.name == target]
    made = data.draw(st.binary(max_size=200))
    if data.draw(st.booleans()):
        made = edited(data.draw(st.sampled_from(kept)).read_bytes(), Choices(made))
    TARGETS[target].load()(made)


# -- the command ---------------------------------------------------------------------------------------------


def test_the_command_feeds_one_input() -> None:
    done = CliRunner().invoke(
        command.main, ["--target", "spark-log", "--input", str(CORPUS / "spark-log" / "no-file")]
    )
    assert done.exit_code == 0
    assert "took" in done.output


def test_the_command_wants_to_know_what_an_input_is_for() -> None:
    done = CliRunner().invoke(command.main, ["--input", str(CORPUS / "spark-log" / "no-file")])
    assert done.exit_code == 2
    assert "--target" in done.output
