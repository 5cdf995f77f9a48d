"""A table that lists ever more files says so, again and again, and louder."""

from __future__ import annotations

import logging

import pytest

from faircopy.publish import table as module
from faircopy.wire.records import NewRecord
from tests.unit.publish.table_bench import Place


def test_a_table_that_is_kept_for_ever(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MANY_LISTED_FILES", 100)
    said: list[tuple[int, int]] = []
    for number in range(320):
        place.log.append(("orders", 0), [NewRecord(b"%d" % number)])
        place.publish()
        said += [
            (number, record.levelno) for record in caplog.records if "files, and Spark" in record.message
        ]
        caplog.clear()
    warnings = [number for number, level in said if level == logging.WARNING]
    errors = [number for number, level in said if level == logging.ERROR]
    assert 98 <= warnings[0] <= 116 and 6 <= len(warnings) <= 10
    assert 198 <= errors[0] <= 216 and 6 <= len(errors) <= 12
    assert max(warnings) < errors[0]
