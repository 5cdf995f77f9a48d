"""Lists for property tests of what goes through many steps.

Left to itself, hypothesis makes lists of five elements on average, whatever their greatest length. That is
too few for a state machine: most of its ways are never taken.
"""

from __future__ import annotations

from typing import TypeVar

import hypothesis.strategies as st

Element = TypeVar("Element")


def many(element: st.SearchStrategy[Element], most: int, least: int = 0) -> st.SearchStrategy[list[Element]]:
    """Lists of `least` to `most` elements, as often long as short."""
    return st.integers(least, most).flatmap(lambda size: st.lists(element, min_size=size, max_size=size))
