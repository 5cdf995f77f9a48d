"""`python -m tests.soak.broker FILE [--mutant NAME] ...`: `faircopy start ...`, with a disk that may be full.

The disk is full while FILE exists. It imports everything, prints `imported`, waits for a line, and goes on as
the command does. So a killed broker has a successor at once, and kills mostly hit work, not imports.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import Any

from faircopy.cli import main as faircopy
from faircopy.cli import start
from faircopy.storage.system import mount
from tests.soak.parent import die_with_parent
from tests.soak.quota import QuotaSystem

IMPORTED = "imported"


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("full", type=Path)
    parser.add_argument("--mutant")
    options, rest = parser.parse_known_args()
    die_with_parent()
    sys.argv = ["faircopy", start.start.name or "start", *rest]
    with mount(QuotaSystem(options.full)), broken_by(options.mutant):
        print(IMPORTED, flush=True)
        if sys.stdin.readline():
            faircopy.main()


def broken_by(mutant: str | None) -> contextlib.AbstractContextManager[Any]:
    """Break one rule of the broker: a soak must find it."""
    if mutant is None:
        return contextlib.nullcontext()
    from tests.mutants.mutants import MUTANTS

    return MUTANTS[mutant]()


if __name__ == "__main__":
    main()
