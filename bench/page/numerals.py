"""Figures as people read them."""

from __future__ import annotations

import math

MIB = 1 << 20


def significant(value: float | None, digits: int = 3) -> str:
    """Three significant digits without an exponent: 0.0123, 4.57, 12,300; a dash where there is nothing."""
    if value is None or not math.isfinite(value):
        return "–"
    rounded = float(f"{value:.{digits - 1}e}")
    if rounded == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(places, 0)}f}"


def quantity(count: float) -> str:
    """A count in short: 950, 10 k, 2.5 M."""
    for limit, suffix in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if count >= limit:
            return f"{count / limit:.3g}{suffix}"
    return f"{count:.3g}"


def size(count: float) -> str:
    """Bytes in binary units: 512 B, 1 KiB, 2.5 GiB."""
    for exponent, suffix in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << exponent:
            return f"{count / (1 << exponent):.3g} {suffix}"
    return f"{count:g} B"


def counted(count: int, thing: str) -> str:
    """1 partition, 4 partitions."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")
