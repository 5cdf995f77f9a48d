"""The models that TLC checks in less than ten seconds; `make models` and `make mutants` check all."""

from __future__ import annotations

import pytest

from tests.fetch.needed import needed
from tests.models.runs import CAUGHT, HELD, SPARE, Run
from tests.models.tlc import check, find_tlc

SECONDS = 280.0
RUNS = [run for run in (*HELD, *CAUGHT, *SPARE) if not run.is_long]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.model.module}, {run.name}")
def test_rules_keep_what_is_promised_and_none_can_be_left_out(run: Run) -> None:
    needed(find_tlc)
    found = check(run.model, run.changed, SECONDS)
    assert run.is_as_expected(found), found.output[-3000:]
