"""Assembles the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jinja2

from bench.page.palette import LOOKS, OTHER, in_order, look_of
from bench.page.sections import sections
from bench.results import Results, Skipped

HERE = Path(__file__).parent


def write_page(results: Results, path: Path) -> None:
    """Write a self-contained HTML file. Lists of results may be empty: the page says what is missing."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals.update(look_of=look_of, reasons_for=lambda section: reasons(results, section.steps))
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


def reasons(results: Results, steps: tuple[str, ...]) -> list[Skipped]:
    """Why a section lacks something, if the run says why: each reason once, and only its first line."""
    found = (Skipped(each.what, first_line(each.why)) for each in results.skipped if is_of(each.what, steps))
    return list(dict.fromkeys(found))


def is_of(what: str, steps: tuple[str, ...]) -> bool:
    """Whether it is one of these steps or a part of one, such as "stall" or "growth: kafka with ..."."""
    return any(re.match(rf"{re.escape(step)}(\W|$)", what, re.IGNORECASE) for step in steps)


def first_line(text: str) -> str:
    """The first line of a text, since an error may contain a whole log."""
    return text.strip().partition("\n")[0].rstrip(".")
