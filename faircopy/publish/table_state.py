"""The file `_faircopy.json` of a table: its format, and its files that are off the list but not deleted yet,
each with the time when it was taken off.

    {"format": 1, "retired": {"d-0000000040-0..9.1f2e3d4c.parquet": 1790000000000},
     "crc32c": <of the JSON of the above>}
"""

from __future__ import annotations

import json

from crc32c import crc32c

from faircopy.errors import FaircopyError
from faircopy.publish.names import sequence_of
from faircopy.publish.schema import FORMAT


class OtherFormatError(FaircopyError):
    """Another version of faircopy made the table, in a format that this one can't read."""


def format_state(retired_ms: dict[str, int]) -> bytes:
    """The exact bytes of the file. `retired_ms` has when each retired file was taken off the list."""
    state = {"format": FORMAT, "retired": retired_ms}
    return json.dumps(state | {"crc32c": crc32c(json.dumps(state).encode())}, indent=1).encode()


def parse_state(content: bytes, table: str) -> dict[str, int]:
    """The inverse of `format_state`. Raises OtherFormatError, or ValueError for damage."""
    try:
        return _parsed(content, table)
    except (KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"it is not what faircopy writes: {error!r}") from error


def _parsed(content: bytes, table: str) -> dict[str, int]:
    state = json.loads(content)
    if not isinstance(state, dict) or not isinstance(state.get("format"), int):
        raise ValueError("it has no format")
    if state["format"] != FORMAT:
        what_to_do = "Upgrade faircopy"
        if state["format"] < FORMAT:
            what_to_do = "Delete the directory and let the table be made again from the log"
        raise OtherFormatError(
            f"opening the plain table in {table}: it has format {state['format']}, and this version of "
            f"faircopy knows format {FORMAT}. {what_to_do}"
        )
    retired_ms = {str(name): int(since_ms) for name, since_ms in dict(state["retired"]).items()}
    if content != format_state(retired_ms):
        raise ValueError("it does not match its checksum")
    for name in retired_ms:
        if sequence_of(name) is None:
            raise ValueError(f"{name!r} is not the name of a data file")
    return retired_ms
