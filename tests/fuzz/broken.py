"""As `tests.fuzz.worker`, with a product that is broken on purpose, to see that the target finds it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.fuzz import worker

UNCHECKED = {
    "journal-files": ("faircopy.journal.entry_format", "check"),
    "request-decoders": ("faircopy.wire.produce", "_named"),
}
"""By target, a function whose only work is to raise an error, and which does nothing now."""


def check_nothing(*_: Any) -> None:
    """In the place of a check."""


def break_product(target: str) -> None:
    module, name = UNCHECKED[target]
    setattr(import_module(module), name, check_nothing)


if __name__ == "__main__":
    worker.main(break_product)
