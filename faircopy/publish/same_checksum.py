"""Four bytes that give a content a certain CRC32C. Pure.

A CRC is linear: flipping a bit of the content flips the same bits of the checksum, whatever the other bits
are. Each of 32 bits in a row flips others, so for each checksum there is one way to choose them.
"""

from __future__ import annotations

from collections.abc import Sequence

from crc32c import crc32c

BYTES = 4
_BITS = range(32)

Matrix = Sequence[int]
"""A linear map of 32 bits: the images of its single bits."""


def four_bytes(checksum: int, wanted: int, bytes_after: int) -> bytes:
    """What to put in place of four zero bytes, so that a content whose CRC32C is `checksum` has `wanted`.

    So many bytes of the content come after the four.
    """
    effects = _effects(bytes_after)
    return _solved(effects, checksum ^ wanted).to_bytes(BYTES, "little")


def _effects(bytes_after: int) -> Matrix:
    """What each of the 32 bits does to the checksum."""
    zeros = crc32c(bytes(BYTES))
    at_once = [crc32c((1 << bit).to_bytes(BYTES, "little")) ^ zeros for bit in _BITS]
    later = _power([crc32c(b"\0", 1 << bit) ^ crc32c(b"\0", 0) for bit in _BITS], bytes_after)
    return [_applied(later, effect) for effect in at_once]


def _applied(matrix: Matrix, vector: int) -> int:
    result = 0
    for bit in _BITS:
        if vector >> bit & 1:
            result ^= matrix[bit]
    return result


def _power(matrix: Matrix, exponent: int) -> Matrix:
    result: Matrix = [1 << bit for bit in _BITS]
    while exponent:
        if exponent & 1:
            result = [_applied(matrix, image) for image in result]
        matrix = [_applied(matrix, image) for image in matrix]
        exponent >>= 1
    return result


def _solved(effects: Matrix, wanted: int) -> int:
    """The bits whose effects add up to `wanted`, by Gaussian elimination."""
    rows: dict[int, tuple[int, int]] = {}  # by its highest bit: an effect, and the bits that have it
    for bit in _BITS:
        effect, bits = effects[bit], 1 << bit
        while effect and (known := rows.get(effect.bit_length())):
            effect, bits = effect ^ known[0], bits ^ known[1]
        rows[effect.bit_length()] = (effect, bits)
    chosen = 0
    while wanted:
        effect, bits = rows[wanted.bit_length()]
        wanted, chosen = wanted ^ effect, chosen ^ bits
    return chosen
