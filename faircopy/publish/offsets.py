"""The next offsets of a table: what it holds, and where it goes on."""

from __future__ import annotations

from collections.abc import Mapping

NextOffsets = dict[str, dict[int, int]]  # of each topic and partition


def offsets_from_json(value: Mapping[str, Mapping[str, int]]) -> NextOffsets:
    """JSON has no integer keys: {"orders": {"0": 120}} -> {"orders": {0: 120}}."""
    return {topic: {int(p): int(offset) for p, offset in parts.items()} for topic, parts in value.items()}
