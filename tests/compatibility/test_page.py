"""docs/COMPATIBILITY.md says what the code does."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from kio.schema.index import api_key_map

from faircopy.api.routes import ROUTES, advertised
from tests.compatibility.apis import NEWER, REASONS, served
from tests.compatibility.page import PAGE, rendered
from tests.compatibility.programs import PROGRAMS, ROOT, Program

ECOSYSTEM = ROOT / "tests" / "ecosystem"


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text() == rendered(), "make it anew: python -m tests.compatibility"


def test_every_api_of_kafka_is_served_or_has_a_reason() -> None:
    names = {name.replace("_", ""): api_key for api_key, name in api_key_map.items()}
    given = [name.lower() for reason in REASONS.values() for name in reason]
    assert len(given) == len(set(given)) and set(given) <= set(names)
    assert {names[name] for name in given} == set(api_key_map) - set(advertised())


def test_every_api_has_words() -> None:
    assert [name for _, name, _, about, _ in served() if len(about) < len("(KIP-1)")] == []


def test_newer_versions_have_a_reason() -> None:
    names = {api_key: ROUTES[api_key].schema.name for api_key in advertised()}
    newest = {names[api_key]: newest_of(api_key_map[api_key]) for api_key in names}
    offered = {names[api_key]: versions[-1] for api_key, versions in advertised().items()}
    assert {name for name in newest if newest[name] > offered[name]} == set(NEWER)


def newest_of(name: str) -> int:
    """The newest version that Kafka has of an API."""
    (folder,) = importlib.import_module(f"kio.schema.{name}").__path__
    return max(int(path.name[1:]) for path in Path(folder).glob("v[0-9]*"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_programs_are_pinned_and_their_tests_are_there(program: Program) -> None:
    assert program.version and (ROOT / program.test).exists()


def test_every_test_of_a_program_is_on_the_page() -> None:
    named = {program.test for program in PROGRAMS}
    quick = [path for path in ECOSYSTEM.glob("test_*.py") if not path.stem.endswith(("_long", "_killed"))]
    assert {str(path.relative_to(ROOT)) for path in quick} <= named
