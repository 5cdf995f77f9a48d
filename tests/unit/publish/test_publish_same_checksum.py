"""Any content can be given any checksum by four bytes, wherever they stand."""

from __future__ import annotations

from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from faircopy.publish.same_checksum import four_bytes


@given(st.binary(max_size=50), st.binary(max_size=5000), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_the_checksum_is_the_wanted_one(before: bytes, after: bytes, first: int, wanted: int) -> None:
    checksum = crc32c(before + bytes(4) + after, first)
    chosen = four_bytes(checksum, wanted, len(after))
    assert crc32c(before + chosen + after, first) == wanted


def test_of_a_large_content() -> None:
    after = bytes(range(256)) * 100_000
    chosen = four_bytes(crc32c(bytes(4) + after), 7, len(after))
    assert crc32c(chosen + after) == 7
