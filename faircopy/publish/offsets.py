"""What a table holds: which topics, and up to which offsets. Publishing continues there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

NextOffsets = dict[str, dict[int, int]]  # of each topic and partition


class Held(NamedTuple):
    """The next offsets of a table's topics, by name, and the ids of these topics.

    A topic that was created again under the same name has another id and offsets of its own: its rows never
    go into a table that holds rows of its predecessor.
    """

    next_offsets: NextOffsets
    topic_ids: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        """An object for JSON."""
        return self._asdict()


NOTHING_HELD = Held({}, {})


def held_from_json(value: Mapping[str, Any]) -> Held:
    """The inverse of `as_json`, from parsed JSON. Raises KeyError, TypeError, ValueError, AttributeError."""
    topic_ids = {str(topic): str(topic_id) for topic, topic_id in value["topic_ids"].items()}
    return Held(offsets_from_json(value["next_offsets"]), topic_ids)


def offsets_from_json(value: Mapping[str, Mapping[str, int]]) -> NextOffsets:
    """JSON has no integer keys: {"orders": {"0": 120}} -> {"orders": {0: 120}}."""
    return {topic: {int(p): int(offset) for p, offset in parts.items()} for topic, parts in value.items()}
