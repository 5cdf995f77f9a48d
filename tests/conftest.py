"""Fixtures for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from faircopy.storage import system
from tests.broker_process import BrokerProcess
from tests.seeds import GIVEN

# Each run tries new examples, unless FAIRCOPY_SEED is set; it prints how to repeat one that fails.
# A machine may be slow for a moment: how long an example takes is no reason to fail.
settings.register_profile("faircopy", print_blob=True, deadline=None, derandomize=GIVEN is not None)
settings.load_profile("faircopy")


@pytest.fixture(autouse=True)
def _files_are_real() -> Iterator[None]:
    """A test that leaves a simulated disk behind fails, and not all that would then write to memory."""
    before = system.mounted()
    yield
    left, system._mounted = system.mounted(), before
    assert left is before


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker for the tests of one module; each makes topics of its own."""
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as process:
        yield process
        process.ensure_no_traceback()


@pytest.fixture
def fresh_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker for one test, which may kill it."""
    with BrokerProcess(tmp_path) as process:
        yield process
        process.ensure_no_traceback()
