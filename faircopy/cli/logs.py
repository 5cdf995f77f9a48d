"""The broker's log on standard error: one line for each event. No client can inject lines of its own."""

from __future__ import annotations

import logging
import sys
from types import TracebackType

from faircopy.cli.columns import printable

FORM = "%(asctime)s %(levelname)s %(message)s"

ExceptionInfo = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)  # as in the standard library


class OneLine(logging.Formatter):
    """Escapes control characters in names; only a traceback of an error of ours has several lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the standard library's name
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: ExceptionInfo) -> str:  # noqa: N802 - the standard library's name
        return "\n".join(map(printable, super().formatException(ei).split("\n")))


def log_to_stderr(*, verbose: bool) -> None:
    """Log the events that an operator has to know; with `verbose` also what the broker does for clients."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine(FORM))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    if verbose:
        logging.getLogger("faircopy").setLevel(logging.DEBUG)
