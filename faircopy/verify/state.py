"""The check of the state store: every page and every record. If possible, it is then opened to read.

The pages come first, without LMDB, which could crash on a damaged one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from faircopy.errors import FaircopyError
from faircopy.storage.paths import exists, size_of
from faircopy.storage.sealed import is_sound
from faircopy.storage.state_store import TABLES, StateStore
from faircopy.storage.store_check import BESIDE_TABLES, FILE, MAP_BYTES, STAMP
from faircopy.verify.findings import Advance, Finding
from faircopy.verify.state_pages import Flaw, StoredRecord, StorePages


class StoreCheck(NamedTuple):
    """The result of a check. With `flaws`, LMDB must not open the file; with `damaged` records it may."""

    flaws: list[Flaw]
    damaged: list[StoredRecord]


def check_store(
    directory: Path, tables: Iterable[str] = TABLES, advance: Advance = lambda _bytes: None
) -> StoreCheck:
    """Read all of the state store in `directory`, which should have these tables; nobody may write to it
    meanwhile.

    A missing or empty store is sound. `advance(bytes)` reports progress. Raises StorageFailure.
    """
    path = directory / FILE
    if not exists(path) or not size_of(path):
        return StoreCheck([], [])
    pages = StorePages(path, STAMP, MAP_BYTES, advance)
    is_new, damaged = True, []
    for record in pages.records():
        is_new = False
        if not is_sound(record.table, record.key, record.value):
            damaged.append(record)
    missing = {name.encode() for name in tables} - pages.tables.keys()
    if not pages.flaws and (pages.tables or not is_new):
        pages.flaws.extend(Flaw(0, f"table {name.decode()!r} is missing") for name in sorted(missing))
    for record in damaged:
        if record.table == BESIDE_TABLES:
            pages.flaws.append(Flaw(record.byte, "the record beside the tables does not match its checksum"))
    return StoreCheck(pages.flaws, damaged)


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
            check = check_store(self._directory, advance=self._advance)
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
