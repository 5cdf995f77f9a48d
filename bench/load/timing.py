"""Times in an HDR histogram, with a precision of a thousandth from microseconds to minutes."""

from __future__ import annotations

from hdrh.histogram import HdrHistogram

from bench.results import Histogram

LEAST_MICROSECONDS, MOST_MICROSECONDS = 1, 600_000_000
SIGNIFICANT_DIGITS = 3
CURVE_PERCENTS = (
    0, 1, 2, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 92.5, 95, 97, 98, 99,
    99.5, 99.9, 99.95, 99.99, 100,
)  # fmt: skip


class Timer:
    """Records times, in seconds, and gives their distribution."""

    def __init__(self) -> None:
        self._counts = HdrHistogram(LEAST_MICROSECONDS, MOST_MICROSECONDS, SIGNIFICANT_DIGITS)

    def record(self, seconds: float) -> None:
        """Count one time. A negative one (clocks were read in the wrong order) counts as the smallest."""
        microseconds = int(seconds * 1e6)
        self._counts.record_value(min(max(microseconds, LEAST_MICROSECONDS), MOST_MICROSECONDS))

    def merge(self, other: Timer) -> None:
        """Add the times of another timer."""
        self._counts.add(other._counts)

    @property
    def count(self) -> int:
        """The number of recorded times."""
        return int(self._counts.get_total_count())

    def percentile_ms(self, percent: float) -> float:
        """The time that `percent` percent of all times don't exceed."""
        return float(self._counts.get_value_at_percentile(percent)) / 1000

    def histogram(self) -> Histogram:
        """The distribution as the results hold it; all zero if nothing was counted."""
        if not self.count:
            return Histogram(0, 0.0, 0.0, 0.0, 0.0, 0.0, [])
        return Histogram(
            self.count,
            self.percentile_ms(50),
            self.percentile_ms(99),
            self.percentile_ms(99.9),
            self._counts.get_max_value() / 1000,
            self._counts.get_mean_value() / 1000,
            [(percent, self.percentile_ms(percent)) for percent in CURVE_PERCENTS],
        )
