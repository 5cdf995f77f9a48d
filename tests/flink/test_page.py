"""The sample of docs/FLINK.md is a part of the program that the tests run."""

from __future__ import annotations

import re

from tests.flink.installed import JAVA, PROGRAM
from tests.jobs.table import ROOT

METHODS = 2


def test_the_sample_is_tested() -> None:
    (sample,) = re.findall(r"```java\n(.*?)```", (ROOT / "docs" / "FLINK.md").read_text(), re.DOTALL)
    methods = sample.split("\n\n")
    assert len(methods) == METHODS
    program = without_indentation((JAVA / f"{PROGRAM}.java").read_text())
    assert [method for method in methods if without_indentation(method) not in program] == []


def without_indentation(text: str) -> str:
    """The text with lines that begin with their first word."""
    return "\n".join(line.strip() for line in text.strip().splitlines())
