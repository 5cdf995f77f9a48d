"""An entry that the fold of a data journal refuses has changed nothing: it can be passed over."""

from __future__ import annotations

from hypothesis import given

from faircopy.copier.fold import PartitionState
from faircopy.errors import InvariantViolation
from tests.many import many
from tests.unit.copier.odd_entries import OddEntries, Step, content, steps


@given(many(steps(), 40, least=1))
def test_what_is_refused_changes_nothing(found: list[Step]) -> None:
    state, entries = PartitionState(), OddEntries()
    for step in found:
        entry, payload = entries.next(step)
        before = content(vars(state))
        try:
            state.fold(entry, payload)
        except InvariantViolation:
            assert content(vars(state)) == before, entry
        else:
            entries.accepted(entry)
