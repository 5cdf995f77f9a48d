"""Each script is what comes of its commands. `make scenarios` writes them anew: look at the difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.kinds import SCRIPTS, play_file


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_script_says_what_comes_of_it(path: Path) -> None:
    assert play_file(path).splitlines() == path.read_text().splitlines()
