"""Whether pyarrow is installed. It writes plain tables and checks them, and is larger than all else together,
so it is the extra `tables`: the broker and its command line do without it.
"""

from __future__ import annotations

from importlib.util import find_spec

from faircopy.errors import FaircopyError

REMEDY = "pip install 'pyarrow>=18' (faircopy's extra `tables`)"
OFF = f"plain tables are off, since pyarrow is not installed: {REMEDY}, and start the broker again"


class NoArrow(FaircopyError):
    """What was asked for needs pyarrow, which is not installed. Nothing was done."""


def has_arrow() -> bool:
    """Whether pyarrow can be imported. It is not imported by this: only the publisher needs its memory."""
    return find_spec("pyarrow") is not None


def ensure_arrow(doing: str) -> None:
    """Raise NoArrow if pyarrow is not installed; `doing` says what needs it."""
    if not has_arrow():
        raise NoArrow(f"{doing} needs pyarrow, which is not installed: {REMEDY}")
