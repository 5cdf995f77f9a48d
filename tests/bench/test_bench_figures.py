"""What the page makes of figures: fitted powers, and digits."""

from __future__ import annotations

import pytest

from bench.page.numerals import significant
from bench.page.sections.growth import power


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
