"""The README's tables: the figures of the committed runs, and what they lack."""

from __future__ import annotations

from pathlib import Path

from bench.late.results import load as load_late
from bench.page.readme import table as readme_table
from bench.page.readme import with_tables
from bench.results import Results, load

RESULTS = Path(__file__).parents[2] / "bench" / "results"
README = Path(__file__).parents[2] / "README.md"


def test_the_readme_has_the_figures_of_the_committed_run() -> None:
    readme = README.read_text()
    full, late = load(RESULTS / "full.json"), load_late(RESULTS / "late.json")
    assert with_tables(readme, full, late) == readme, "run `python -m bench readme`"


def test_the_table_of_the_readme_says_what_was_not_measured() -> None:
    table = readme_table(Results({}))
    assert "nan" not in table
    assert table.count("–") >= 4
