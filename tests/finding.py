"""Failures that show a fault of the product, whatever the machine was busy with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Finding(AssertionError):
    """An anomaly in a history, damaged data, a traceback in a broker's log.

    A test that fails beside others is tried again alone, once, since a busy machine may be the cause. No
    machine is so busy that it loses a message: what raises this is never tried again.
    """


@contextmanager
def a_finding_if_not() -> Iterator[None]:
    """What is asserted within is a promise of the product: an AssertionError becomes a Finding."""
    try:
        yield
    except AssertionError as error:
        raise Finding(str(error)) from error
