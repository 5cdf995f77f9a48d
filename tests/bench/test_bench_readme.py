"""The README's table: the figures of the committed run, and what it lacks."""

from __future__ import annotations

from pathlib import Path

from bench.page.readme import table as readme_table
from bench.page.readme import with_table
from bench.results import Results, load

RESULTS = Path(__file__).parents[2] / "bench" / "results"
README = Path(__file__).parents[2] / "README.md"


def test_the_readme_has_the_figures_of_the_committed_run() -> None:
    readme = README.read_text()
    assert with_table(readme, load(RESULTS / "full.json")) == readme, "run `python -m bench readme`"


def test_the_table_of_the_readme_says_what_was_not_measured() -> None:
    table = readme_table(Results({}))
    assert "nan" not in table
    assert table.count("–") >= 4
