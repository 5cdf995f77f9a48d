"""Spans of a partition that is stopped: of a damaged log, not even the ends are known."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from faircopy.api.spans import spans
from faircopy.datalog.read import DamagedLog
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import UUID_ZERO


class StoppedPartition:
    """A partition that was damaged when the broker started, so that nothing of its log was read."""

    log = SimpleNamespace(start_offset=0, end_offset=0)

    def ensure_readable(self) -> None:
        raise DamagedLog("a record of the state store is damaged")


@pytest.mark.parametrize("start", [0, 100])
def test_damage_is_not_taken_for_deleted_records(start: int) -> None:
    catalog = SimpleNamespace(find=lambda _topic, _number: StoppedPartition())
    context: Any = SimpleNamespace(parts=SimpleNamespace(catalog=catalog))
    request: Any = SimpleNamespace(
        topic_id=UUID_ZERO, name="t", partition=0, start_offset=start, end_offset=200
    )
    answer = asyncio.run(spans(request, context))
    assert answer == {"error_code": ErrorCode.KAFKA_STORAGE_ERROR, "spans": []}
