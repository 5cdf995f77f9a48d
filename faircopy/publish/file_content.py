"""What a data file holds, as a Delta log says it: readers count rows by it, and tables drop files by it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from faircopy.publish.files import Files
from faircopy.publish.offsets import NextOffsets
from faircopy.publish.schema import Footer, parse_footer


class Content(NamedTuple):
    """How many rows a file has, and up to which offset it goes in each partition that it has rows of."""

    rows: int
    ends: NextOffsets


def content_of(metadata: pq.FileMetaData, footer: Footer) -> Content:
    """The content of a file with this metadata, of which `footer` is our part."""
    ends: NextOffsets = {}
    for topic, partition, _ in footer.slices:
        ends.setdefault(topic, {})[partition] = footer.held.next_offsets[topic][partition]
    return Content(metadata.num_rows, ends)


def content_in(files: Files, path: Path) -> Content:
    """The content of a file on disk. Raises FooterError, OSError, or pyarrow's errors for damage."""
    with files.open_to_read(path) as file, pq.ParquetFile(file) as parquet:
        return content_of(parquet.metadata, parse_footer(parquet.metadata.metadata, str(path)))
