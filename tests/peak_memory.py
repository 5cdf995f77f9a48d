"""How much memory something takes at most, measured in a fork.

In a process with native threads that use Python, as Arrow's do, `tracemalloc.stop` may end the process
(https://github.com/python/cpython/issues/128679, which Python 3.11 has). The fork has no such threads, and it
ends without stopping anything.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

from tests.forked import said_in_child


def takes_less_than(peak_bytes: int, work: Callable[[], object], name: str) -> bool:
    """Whether some work takes less than these bytes at any moment; `name` is for errors. Raises TrialDied if
    the work raises anything.
    """

    def is_less() -> bool:
        tracemalloc.start()
        work()
        return tracemalloc.get_traced_memory()[1] < peak_bytes

    return said_in_child(is_less, name)
