"""Clients that fail as they may, and how they are left: without waiting for what they still would do."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from tests.clients.adapter import ClientFailed, Consumer, Producer

# The adapters' own, what they add when nothing comes for long (TimeoutError, AssertionError), and an error that
# librdkafka's binding makes of a fatal one that a callback meets (SystemError).
EXPECTED = (ClientFailed, TimeoutError, AssertionError, SystemError)


@contextlib.contextmanager
def dismiss(client: Producer | Consumer) -> Iterator[None]:
    """Leave it in the end: it may close in its own time, without a word for transactions that are open."""
    try:
        yield
    finally:
        threading.Thread(target=close_quietly, args=(client,), daemon=True).start()


def close_quietly(client: Producer | Consumer) -> None:
    with contextlib.suppress(Exception):
        client.close()
