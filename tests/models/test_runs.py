"""The list of TLC's runs, and how its output is read; test_models.py has the runs."""

from __future__ import annotations

from tests.models.runs import CAUGHT, HELD, SPARE
from tests.models.tlc import Found, read


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
