"""The models that TLC checks in less than ten seconds; `make models` and `make mutants` check all."""

from __future__ import annotations

import pytest

from tests.fetch.needed import needed
from tests.models.runs import CAUGHT, HELD, SPARE, Run
from tests.models.tlc import Found, check, find_tlc, read

SECONDS = 280.0
RUNS = [run for run in (*HELD, *CAUGHT, *SPARE) if not run.is_long]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.model.module}, {run.name}")
def test_rules_keep_what_is_promised_and_none_can_be_left_out(run: Run) -> None:
    needed(find_tlc)
    found = check(run.model, run.changed, SECONDS)
    assert run.is_as_expected(found), found.output[-3000:]


def test_every_rule_is_left_out_somewhere() -> None:
    for model in {run.model.module: run.model for run in HELD}.values():
        tried = {name for run in (*CAUGHT, *SPARE) if run.model is model for name in run.changed}
        rules = {name for name, value in model.constants.items() if value == "TRUE"} | {"CutRule"}
        assert rules & set(model.constants) <= tried


def test_a_run_that_was_cut_short_proves_nothing() -> None:
    run = next(run for run in HELD)
    cut_short = read("5,000 distinct states found (2 states left on queue)", None)
    assert cut_short == Found(None, 5_000, is_whole=False, steps=0, output=cut_short.output)
    assert not run.is_as_expected(cut_short)
