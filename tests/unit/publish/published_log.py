"""A broker's log as the tests need it, and the requests to publish it piece by piece."""

from __future__ import annotations

from pathlib import Path

from faircopy.publish.files import Files, write_durably
from faircopy.publish.requests import Chunk, Cut, TxidSpan
from faircopy.wire.records import NewRecord, build_batch

Partition = tuple[str, int]


class GrowingLog:
    """Segment files in `directory`, one for each partition; `cut` asks for what came since the last cut."""

    def __init__(
        self, files: Files, directory: Path, partitions: list[Partition], topic_id: str = "0f"
    ) -> None:
        self.topic_id = topic_id
        self._files = files
        self._directory = directory
        self._bytes = dict.fromkeys(partitions, b"")
        self._cut_at = dict.fromkeys(partitions, (0, 0))  # offset and position
        self._spans: dict[Partition, list[TxidSpan]] = {partition: [] for partition in partitions}
        self.ends = dict.fromkeys(partitions, 0)

    def append(self, partition: Partition, messages: list[NewRecord], txid: str | None = None) -> None:
        first = self.ends[partition]
        self._bytes[partition] += build_batch(messages, base_offset=first)
        self.ends[partition] = first + len(messages)
        if txid:
            self._spans[partition].append((first, first + len(messages) - 1, txid))

    def append_batch(self, partition: Partition, batch: bytes, records: int) -> None:
        """A batch made elsewhere; its base offset must be the partition's end."""
        self._bytes[partition] += batch
        self.ends[partition] += records

    def path(self, partition: Partition) -> Path:
        return self._directory / f"{partition[0]}-{partition[1]}.log"

    def cut(self) -> tuple[Cut, ...]:
        """Write the log, and ask for all that came since the last cut."""
        cuts = []
        for partition, content in self._bytes.items():
            offset, position = self._cut_at[partition]
            write_durably(self._files, self.path(partition), content)
            chunk = Chunk(str(self.path(partition)), position, len(content) - position)
            spans = tuple(self._spans[partition])
            cuts.append(
                Cut(partition[0], self.topic_id, partition[1], offset, self.ends[partition], (chunk,), spans)
            )
            self._cut_at[partition] = self.ends[partition], len(content)
            self._spans[partition] = []
        return tuple(cuts)
