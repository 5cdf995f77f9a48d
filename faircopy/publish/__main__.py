"""`python -m faircopy.publish`: the process that writes plain tables for one broker, which it talks to over
pipes.

It ends when the broker closes its end of standard input, even if the broker just dies.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from importlib.abc import MetaPathFinder
from typing import BinaryIO

from faircopy.publish.files import Files, FsyncError
from faircopy.storage.process import allow_many_files

NICENESS = 5  # readers can wait a little; producers should not
FSYNC_FAILED = 5  # exit status


def main() -> int:
    """Serve standard input; return the exit status."""
    os.nice(NICENESS)
    os.umask(0o022)  # the permissions of a table's directory decide who may read it
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Signals that a terminal or a service manager sends to all processes are for the broker; then stdin
        # ends.
        signal.signal(number, signal.SIG_IGN)
    allow_many_files()  # each open table keeps one open, its lock
    logging.basicConfig(stream=sys.stderr, format="faircopy.publish: %(levelname)s: %(message)s")
    replies = _private_stdout()
    try:
        # A dead broker does not wait for a reply.
        with contextlib.suppress(BrokenPipeError):
            _serve(sys.stdin.buffer, replies)
    except FsyncError as error:
        logging.error("%s", error)
        return FSYNC_FAILED
    return 0


def _serve(requests: BinaryIO, replies: BinaryIO) -> None:
    # Arrow's own allocator keeps freed memory, but between publications this process should be small. Arrow
    # chooses its allocator when it is imported.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    sys.meta_path.insert(0, _WithoutPandas())
    import pyarrow as pa

    from faircopy.publish.server import PublishServer

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    with contextlib.closing(PublishServer(Files())) as server:
        server.serve(requests, replies)


class _WithoutPandas(MetaPathFinder):
    """Keeps Arrow from importing pandas. If pandas is installed, Arrow imports it only to check that its
    arguments are not pandas objects, which takes 40 MB."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("not for this process", name=fullname)


def _private_stdout() -> BinaryIO:
    """Standard output, for replies only: all other output goes to standard error."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return replies


if __name__ == "__main__":
    sys.exit(main())
