"""The leader epochs that a journal's checkpoint has are compared with those of the entries below it (I6)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest

from faircopy.journal.checkpoint import EPOCHS_FIELD
from faircopy.storage.state_store import StateStore
from tests.rot.made import Made
from tests.rot.test_journals import SHARED, case_of

NAMES = ["orders-0", "bulk-1", *SHARED]
TRUE = [[1, 0]]
"""One life has written everything."""
WRONG = {
    "another epoch": [[2, 0]],
    "one more epoch": [[1, 0], [2, 64]],
    "the epoch of nobody": [[0, 0]],
}
UNKNOWN = {
    "not as far back": [[1, 64]],
    "of format 2": None,
}


class ChangedStore:
    """A state store in which the checkpoints of all journals have these leader epochs; None: none at all."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self.epochs: list[list[int]] | None = TRUE

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get(self, table: str, key: bytes) -> bytes | None:
        row = self._store.get(table, key)
        if table != "checkpoints" or row is None:
            return row
        fields = json.loads(row)
        assert fields.pop(EPOCHS_FIELD) == TRUE
        if self.epochs is not None:
            fields[EPOCHS_FIELD] = self.epochs
        return json.dumps(fields).encode()


@pytest.fixture
def store(stopped: Made) -> Iterator[ChangedStore]:
    opened = StateStore.open_to_read(stopped.data / "state.lmdb")
    yield ChangedStore(opened)
    opened.close()


@pytest.mark.parametrize("name", NAMES)
def test_epochs_that_the_journal_does_not_have_are_found(
    stopped: Made, store: ChangedStore, name: str
) -> None:
    case = case_of(stopped, cast(StateStore, store), name)
    for what, store.epochs in WRONG.items():
        findings = [str(each) for each in case.check()]
        assert len(findings) == 1, (what, findings)
        assert "I6: the checkpoint has leader epochs" in findings[0]


@pytest.mark.parametrize("name", NAMES)
def test_what_a_checkpoint_does_not_know_is_not_compared(
    stopped: Made, store: ChangedStore, name: str
) -> None:
    case = case_of(stopped, cast(StateStore, store), name)
    for what, store.epochs in UNKNOWN.items():
        assert case.check() == [], what
