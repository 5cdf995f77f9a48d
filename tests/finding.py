"""A failure that shows a fault of the product, whatever the machine was busy with."""

from __future__ import annotations


class Finding(AssertionError):
    """An anomaly in a history, damaged data, a traceback in a broker's log.

    A test that fails beside others is tried again alone, once, since a busy machine may be the cause. No
    machine is so busy that it loses a message: what raises this is never tried again.
    """
