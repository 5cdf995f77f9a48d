"""The file `_faircopy.json` of a table: its format, and since when files are off the list but not yet deleted.

{"format": 1, "retired": {"d-0000000040-0..9.parquet": 1790000000000}}
"""

from __future__ import annotations

import json

from faircopy.errors import FaircopyError
from faircopy.publish.schema import FORMAT


class NewerFormatError(FaircopyError):
    """A newer version of faircopy made the table."""


def format_state(retired_ms: dict[str, int]) -> bytes:
    return json.dumps({"format": FORMAT, "retired": retired_ms}, indent=1).encode()


def parse_state(content: bytes, table: str) -> dict[str, int]:
    """Since when each file is off the list, in ms. Raises NewerFormatError, or ValueError if it is damaged."""
    state = json.loads(content)
    if not isinstance(state, dict) or not isinstance(state.get("format"), int):
        raise ValueError("it has no format")
    if state["format"] > FORMAT:
        raise NewerFormatError(
            f"opening the plain table in {table}: it has format {state['format']}, and this version of faircopy"
            f" knows up to {FORMAT}. Upgrade faircopy"
        )
    return {str(name): int(since_ms) for name, since_ms in dict(state["retired"]).items()}
