"""How systems and charts look on the page."""

from __future__ import annotations

from bench.page.chart import for_page
from bench.page.palette import LOOKS, OTHER, in_order, look_of


def test_systems_have_looks_of_their_own() -> None:
    assert len({look.light for look in LOOKS}) == len({look.dark for look in LOOKS}) == len(LOOKS)
    assert look_of("a stranger") is OTHER
    assert in_order(["zebra", "kafka", "local-copy fsync", "kafka"]) == ["local-copy fsync", "kafka", "zebra"]


def test_a_chart_is_made_fit_for_the_page() -> None:
    svg = (
        '<?xml version="1.0"?><!DOCTYPE svg><svg width="10pt" height="5pt" viewBox="0 0 10 5">'
        '<!-- made --><g id="a">'
        "<text style=\"font: 9px 'DejaVu Sans', sans-serif; fill: #101112\">1</text></g>"
        '<use xlink:href="#a" clip-path="url(#a)" style="stroke: #0072b2"/></svg>'
    )
    assert for_page(svg, "plot") == (
        '<svg aria-hidden="true" focusable="false" viewBox="0 0 10 5"><g id="plot-a">'
        '<text style="font: 9px system-ui, sans-serif; fill: currentColor">1</text></g>'
        '<use xlink:href="#plot-a" clip-path="url(#plot-a)"'
        ' style="stroke: var(--system-local-copy-fsync)"/></svg>'
    )
