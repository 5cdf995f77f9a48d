"""The examples of docs/TESTING.md."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "TESTING.md"


def blocks(language: str) -> list[str]:
    """The blocks of code in a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def of_pytest() -> str:
    """The module that the examples for pytest make together."""
    return "\n\n".join(block for block in blocks("python") if "unittest" not in block)


def of_unittest() -> str:
    """The example for unittest."""
    (found,) = [block for block in blocks("python") if "unittest" in block]
    return found
