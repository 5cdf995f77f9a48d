"""Locates the damage in a Parquet file, as far as the checksums of its pages show it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ENDING_BYTES = 8  # length of the footer, and "PAR1"


def where_damaged(path: Path) -> tuple[int, str]:
    """The first byte of the damaged part, and which part that is. The file is known not to be sound.

    Call this in a child process (`verify.child`): a damaged footer can make pyarrow crash it.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            return 0, ", at its start"
        file.seek(max(size - ENDING_BYTES, 0))
        ending = file.read()
    footer_at = size - ENDING_BYTES - int.from_bytes(ending[:4], "little")
    if ending[4:] != b"PAR1" or not 4 <= footer_at < size:
        return max(size - ENDING_BYTES, 0), ", at its end"
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as parquet:
            found = first_bad_column(parquet)
            # A damaged footer may place columns anywhere.
            is_placed = found is not None and 4 <= found[0] < footer_at
            return found if found and is_placed else (footer_at, ", in its footer or between its pages")
    except (pa.ArrowException, OSError, MemoryError, ValueError):
        return footer_at, ", in its footer"


def first_bad_column(parquet: pq.ParquetFile) -> tuple[int, str] | None:
    """The first column chunk that can't be read."""
    for group in range(parquet.num_row_groups):
        chunks = [parquet.metadata.row_group(group).column(n) for n in range(parquet.metadata.num_columns)]
        for chunk in sorted(chunks, key=lambda chunk: first_byte(chunk)):
            try:
                parquet.read_row_group(group, columns=[chunk.path_in_schema], use_threads=False)
            except (pa.ArrowException, OSError, MemoryError, ValueError):
                return first_byte(chunk), f", as column {chunk.path_in_schema} of row group {group} shows"
    return None


def first_byte(chunk: pq.ColumnChunkMetaData) -> int:
    """Where the pages of a column chunk begin."""
    return int(chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset)
