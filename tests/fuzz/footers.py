"""The key-value part of a Parquet file's footer. The rest is Arrow's affair, which is given sound files only."""

from __future__ import annotations

from faircopy.publish.schema import FooterError, footer_metadata, parse_footer
from tests.fuzz.choices import Choices

KEYS = [b"faircopy.next_offsets", b"faircopy.slices", b"faircopy.format", b"other"]
PAIRS_MAX = 4


def feed_footer(data: bytes) -> None:
    """Keys and values; what is read from them is what is written to them."""
    choices = Choices(data)
    metadata = {choices.one_of(KEYS): choices.some() for _ in range(PAIRS_MAX)}
    try:
        footer = parse_footer(metadata, "d-0000000032-0..9.parquet")
    except FooterError:
        return
    written = {key.encode(): value.encode() for key, value in footer_metadata(footer).items()}
    assert parse_footer(written, "the same") == footer
