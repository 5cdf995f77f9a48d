"""What brokers log about bugs of their own, and what asyncio is told of, by machine."""

from __future__ import annotations

import contextlib
import contextvars
import logging
from collections.abc import Iterator
from typing import Any

from faircopy.errors import FaircopyError
from faircopy.storage.failures import StorageFailure, WriteFailure
from tests.simulation.here import Place, place_of


class Complaints(logging.Handler):
    """Collects what the brokers log about their own bugs: errors with a trace that no disk fault explains."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._found: list[tuple[Place | None, str]] = []

    @property
    def found(self) -> list[str]:
        """All complaints."""
        return [text for _, text in self._found]

    def about(self, place: Place) -> list[str]:
        """The complaints about one machine, and those that name none: any may be their cause."""
        return [text for found_at, text in self._found if found_at in (place, None)]

    def emit(self, record: logging.LogRecord) -> None:
        if "is stopped" in record.getMessage() and not is_about_writing(record):
            self._add(record.getMessage())  # a damaged partition, which none of our faults may cause
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, (FaircopyError, OSError)):
            self._add(f"{record.getMessage()}: {error!r}")

    def _add(self, text: str) -> None:
        self._found.append((place_of(contextvars.copy_context()), text))


@contextlib.contextmanager
def listening(complaints: Complaints) -> Iterator[None]:
    """Listen to the broker's log."""
    logger = logging.getLogger("faircopy")
    logger.addHandler(complaints)
    try:
        yield
    finally:
        logger.removeHandler(complaints)


def failures_on(place: Place, failures: list[dict[str, Any]]) -> list[str]:
    """What asyncio was told of (`VirtualLoop.failures`) on one machine, and on none."""
    return [
        text_of(failure)
        for failure in failures
        if place_of(failure["context"]) in (place, None) and not is_of_disk(failure)
    ]


def is_about_writing(record: logging.LogRecord) -> bool:
    """Whether a record reports a failed write, which ends the broker (I10)."""
    return isinstance(record.args, tuple) and any(isinstance(each, WriteFailure) for each in record.args)


def is_of_disk(failure: dict[str, Any]) -> bool:
    """Whether the loop was told of a disk error, which ends the broker (I10)."""
    return isinstance(failure.get("exception"), StorageFailure)


def text_of(failure: dict[str, Any]) -> str:
    return f"{failure['message']}: {failure.get('exception')!r}"
