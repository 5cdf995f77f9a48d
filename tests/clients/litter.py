"""What foreign clients leave lying about: the tests that use them overlook it, and no others."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import pytest

WARNINGS_OF_OTHERS = (
    # kafka-python reads a message's schema on first use, with a function that Python 3.11 deprecates.
    "ignore:(read|open)_text is deprecated:DeprecationWarning",
    # kafka-python leaves sockets to the garbage collector when a connection breaks or is refused.
    "ignore:unclosed <socket:ResourceWarning",
    "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning",
)


def overlook(item: pytest.Item) -> None:
    """Have one test overlook these warnings."""
    for warning in WARNINGS_OF_OTHERS:
        item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect what a test leaves before the next one, which may not overlook it, is blamed for it."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
