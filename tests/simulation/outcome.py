"""What came of a seed."""

from __future__ import annotations

import hashlib
import io
from typing import NamedTuple

from tests.checker.check import Checked
from tests.checker.history import Operation, write_history
from tests.simulation.coverage import Coverage


class Outcome(NamedTuple):
    """The outcome of a seed. `failures` are bugs that showed without the checker."""

    seed: int
    checked: Checked
    failures: list[str]
    history: list[Operation]
    coverage: Coverage
    virtual_seconds: float
    has_arbiter: bool = False

    @property
    def is_good(self) -> bool:
        return not self.failures and self.checked.verdict.value == "valid"

    @property
    def digest(self) -> str:
        """A digest that is equal for equal histories."""
        file = io.StringIO()
        write_history(self.history, file)
        return hashlib.sha256(file.getvalue().encode()).hexdigest()
