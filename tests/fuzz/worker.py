"""`python -m tests.fuzz.worker TARGET FOUND [LIBFUZZER ARGUMENT...]`: one target under atheris.

The product's modules are instrumented as they are imported, so nothing of it may be imported before.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.targets import TARGETS, Feed

HISTORY = "history-"


def main(prepare: Callable[[str], None] = lambda _target: None) -> None:
    """Fuzz one target. Does not return, as libFuzzer ends the process.

    `prepare(target)` is called after the product is imported.
    """
    import atheris  # not to be had everywhere

    name, found, *arguments = sys.argv[1:]
    target = TARGETS[name]
    with atheris.instrument_imports(include=["faircopy"]):
        feed = target.load()
    prepare(name)
    if target.has_history:
        feed = keeping_history(feed, Path(found))

    def feed_only(data: bytes) -> None:
        feed(data)  # libFuzzer takes a result for something else

    atheris.Setup([sys.argv[0], *arguments], feed_only)
    end_at_once()
    atheris.Fuzz()


def end_at_once() -> None:
    """Let the process end without the destructors of Arrow's thread pools: libFuzzer calls exit() with the
    GIL, for which a thread of theirs may wait for ever.
    """
    import pyarrow

    pyarrow.cpu_count(), pyarrow.io_thread_count()  # make the pools: what is registered last runs first
    c_library = ctypes.CDLL(None)
    if hasattr(c_library, "on_exit"):  # glibc has it
        c_library.on_exit(c_library._exit, None)


def keeping_history(feed: Feed, found: Path) -> Feed:
    """The same; when it fails, all inputs that led there are written as one."""
    from tests.fuzz.broker import history

    def feed_and_keep(data: bytes) -> bool:
        try:
            return feed(data)
        except BaseException:
            together = history()
            Path(found, HISTORY + hashlib.sha1(together).hexdigest()).write_bytes(together)
            raise

    return feed_and_keep


if __name__ == "__main__":
    main()
