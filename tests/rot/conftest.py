"""The directories whose bytes are changed; each test leaves them as they were, or works on a copy."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from faircopy.publish.files import Files
from faircopy.publish.relocate import relocate
from tests.rot.made import Made, make
from tests.seeds import seed_for


@pytest.fixture(scope="session")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """That of a broker that was stopped in order: all is below the checkpoints."""
    return make(tmp_path_factory.mktemp("stopped"), kill=False)


@pytest.fixture(scope="session")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """That of a broker that was killed before its first checkpoint: all is in the journals."""
    return make(tmp_path_factory.mktemp("killed"), kill=True)


@pytest.fixture
def copy_of(tmp_path: Path) -> Callable[[Made], Made]:
    """A copy of a directory, for a broker to run on."""

    def copy(made: Made) -> Made:
        copied = Made(tmp_path)
        shutil.copytree(made.data, copied.data)
        copied.content = made.content
        for table in (copied.data / "plain").iterdir():
            relocate(Files(), table)
        return copied

    return copy


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Chance of a seed that is printed."""
    return random.Random(seed_for(request.node.name))
