"""Puts the page together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jinja2

from bench.page.palette import LOOKS, OTHER, in_order, look_of
from bench.page.sections import sections
from bench.results import Results, Skipped

HERE = Path(__file__).parent


def write_page(results: Results, path: Path) -> None:
    """Write one self-contained HTML file. Lists of the results may be empty: the page says what was not measured."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals.update(look_of=look_of, reasons_for=lambda section: reasons(results, section.keywords))
    page = environment.get_template("page.html").render(
        style=(HERE / "style.css").read_text(),
        looks=[*LOOKS, OTHER],
        about=[(name, text_of(value)) for name, value in results.about.items()],
        sections=sections(results),
        skipped=results.skipped,
        systems=in_order(system.name for system in results.systems),
    )
    path.write_text(page)


def text_of(value: Any) -> str:
    """A value of `about` in words."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {text_of(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(text_of, value))
    return value if isinstance(value, str) else json.dumps(value)


def reasons(results: Results, keywords: tuple[str, ...]) -> list[Skipped]:
    """Why a section has nothing to show, as far as the run says it."""
    return [each for each in results.skipped if any(word in each.what.lower() for word in keywords)]
