"""Which batches were refused that their producers will send again, and that others must not overtake.

Only what was refused last is known: a client has few batches in flight, and sends the oldest first again.
"""

from __future__ import annotations

from faircopy.catalogue.topics import NAME_CHARS_MAX
from faircopy.wire.batch import HEADER_BYTES, BatchHeader, read_header

KNOWN_MAX = 10_000

Writer = tuple[str, int, int, int]
"""Topic, partition, producer id and epoch."""


class RefusedFirst:
    """Of each producer in each partition, the lowest sequence that was refused."""

    def __init__(self) -> None:
        self._lowest: dict[Writer, int] = {}

    def note(self, topic: str, partition: int, header: BatchHeader) -> None:
        """A batch is refused."""
        if header.producer_id < 0 or len(topic) > NAME_CHARS_MAX:
            return  # there is no such topic, and names of any length would take memory
        writer = (topic, partition, header.producer_id, header.producer_epoch)
        lowest = self._lowest.pop(writer, header.base_sequence)
        self._lowest[writer] = min(lowest, header.base_sequence)
        if len(self._lowest) > KNOWN_MAX:
            del self._lowest[next(iter(self._lowest))]

    def note_unchecked(self, topic: str, partition: int, records: memoryview | None) -> None:
        """The same for a batch that was not looked at yet."""
        if records is not None and len(records) >= HEADER_BYTES:
            self.note(topic, partition, read_header(records))

    def may_begin(self, topic: str, partition: int, header: BatchHeader) -> bool:
        """Whether no batch before this one was refused. If so, this one is forgotten, too."""
        writer = (topic, partition, header.producer_id, header.producer_epoch)
        lowest = self._lowest.get(writer, header.base_sequence)
        if header.base_sequence != lowest:
            return False
        self._lowest.pop(writer, None)
        return True
