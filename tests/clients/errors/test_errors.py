"""docs/ERRORS.md is true of three libraries, and says what the tests check."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faircopy.testing import Broker
from tests.clients.errors.application import Application
from tests.clients.errors.checking import BY_NAME, check
from tests.clients.errors.page import PAGE, rendered
from tests.clients.errors.python_applications import Aiokafka, ConfluentKafka, KafkaPython
from tests.clients.errors.told import TOLD

LIBRARIES: tuple[type[Application], ...] = (ConfluentKafka, Aiokafka, KafkaPython)


@pytest.fixture(scope="module")
def faulty() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


CASES = [(library, situation) for library in LIBRARIES for situation in TOLD[library.library]]


@pytest.mark.parametrize(
    ("library", "situation"), CASES, ids=[f"{library.library}: {name}" for library, name in CASES]
)
def test_what_is_told_and_advised(faulty: Broker, library: type[Application], situation: str) -> None:
    check(faulty, library(), situation)


def test_the_page_is_what_the_tests_check() -> None:
    assert PAGE.read_text() == rendered(), "make it anew: python -m tests.clients.errors"


@pytest.mark.parametrize("library", TOLD)
def test_only_situations_are_told_of(library: str) -> None:
    assert TOLD[library].keys() <= BY_NAME.keys()
