"""What the page makes of figures: winners, fitted powers, and digits."""

from __future__ import annotations

import pytest

from bench.page.numerals import significant
from bench.page.sections.growth import power
from bench.page.winners import DistanceCase, ranking, winners
from bench.results import Distance


def test_winners_are_the_fastest_and_those_level_with_it() -> None:
    rows = [
        Distance("local-copy", False, "", "", 1, 2, 0.01, 4, 5.0, 9.0),
        Distance("parallel-prepare", False, "", "", 1, 2, 0.01, 4, 5.001, 11.0),
        Distance("markers", False, "", "", 1, 2, 0.01, 4, 6.0, 8.5),
        Distance("none", False, "", "", 1, 2, 0.01, 4, 3.0, 3.0),
        Distance("markers", True, "", "", 1, 2, 0.01, 4, 8.0, 8.0),
    ]
    by_commit = ranking(rows)
    assert [each.protocol for each in winners(by_commit[DistanceCase(False, 1, 2, 4)])] == [
        "local-copy",
        "parallel-prepare",
    ]
    assert [each.protocol for each in winners(by_commit[DistanceCase(True, 1, 2, 4)])] == ["markers"]
    by_visible = ranking(rows, by_visible=True)
    assert [each.protocol for each in by_visible[DistanceCase(False, 1, 2, 4)]] == [
        "markers",
        "local-copy",
        "parallel-prepare",
    ]


def test_fitted_powers() -> None:
    assert power([(10, 3.0), (100, 30.0), (1000, 300.0)]) == pytest.approx(1)
    assert power([(10, 3.0), (1000, 3.0)]) == pytest.approx(0)
    assert power([(10, 3.0), (1000, 30.0)]) == pytest.approx(0.5)
    assert power([(10, 3.0)]) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.012345, "0.0123"), (4.5678, "4.57"), (12345.6, "12,300"), (0.99996, "1.00"), (100.0, "100"),
        (0, "0"), (None, "–"), (float("inf"), "–"), (-2.5, "-2.50"),
    ],
)  # fmt: skip
def test_figures_have_three_significant_digits(value: float | None, text: str) -> None:
    assert significant(value) == text
