"""The check of the state store: every page and every record. If possible, it is then opened to read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from faircopy.errors import FaircopyError
from faircopy.storage.paths import exists
from faircopy.storage.state_store import TABLES, StateStore
from faircopy.storage.store_check import FILE, check_store
from faircopy.verify.findings import Advance, Finding


class StateCheck:
    """The check of the state store in `directory`. Then `store` is open, unless LMDB must not open it."""

    def __init__(self, directory: Path, advance: Advance) -> None:
        self._directory = directory
        self._advance = advance
        self.store: StateStore | None = None

    def run(self) -> Iterator[Finding]:
        """All findings."""
        path = self._directory / FILE
        if not exists(path):
            yield Finding(path, None, "the state store is missing")
            return
        try:
            check = check_store(self._directory, TABLES, self._advance)
            yield from (Finding(path, flaw.byte, flaw.what) for flaw in check.flaws)
            for record in check.damaged:
                yield Finding(
                    path,
                    record.byte,
                    f"the record of key {record.key.hex()} in table {record.table.decode()} does not match "
                    f"its checksum",
                )
            if not check.flaws:
                self.store = StateStore.open_to_read(self._directory)
        except FaircopyError as error:
            yield Finding(path, None, str(error))
