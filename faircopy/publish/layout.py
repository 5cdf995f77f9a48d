"""What topics ask of a table's columns. Without Arrow, for the broker."""

from __future__ import annotations

from typing import NamedTuple

KEEP, STOP, DEAD_LETTER = "keep", "stop", "dead-letter"
BAD_VALUES = (KEEP, STOP, DEAD_LETTER)
"""What may become of values that do not fit (topic setting `plain.bad.values`)."""


class TopicColumns(NamedTuple):
    """What a topic's values become: columns of `schema` (as `settings.columns` reads it), and what shall be
    done with values that do not fit: one of KEEP, STOP, DEAD_LETTER.
    """

    topic: str
    schema: str
    bad_values: str = KEEP


class Layout(NamedTuple):
    """What columns a table shall have. Values of topics that are not in `topics` are not looked into."""

    topics: tuple[TopicColumns, ...] = ()
    by_day: bool = False

    @property
    def has_dead_letters(self) -> bool:
        """Whether rows with values that do not fit go to another table."""
        return any(topic.bad_values == DEAD_LETTER for topic in self.topics)


NO_COLUMNS = Layout()
