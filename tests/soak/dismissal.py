"""The errors that clients may end with, and how clients are closed: without waiting for their work."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from tests.clients.adapter import ClientFailed, Consumer, Producer

# The adapters' own error; what they raise when nothing comes for long (TimeoutError, AssertionError); and
# what librdkafka's binding makes of a fatal error in a callback (SystemError).
EXPECTED = (ClientFailed, TimeoutError, AssertionError, SystemError)


@contextlib.contextmanager
def dismiss(client: Producer | Consumer) -> Iterator[None]:
    """Finally, let the client close in its own time; open transactions are neither committed nor aborted."""
    try:
        yield
    finally:
        threading.Thread(target=close_quietly, args=(client,), daemon=True).start()


def close_quietly(client: Producer | Consumer) -> None:
    with contextlib.suppress(Exception):
        client.close()
