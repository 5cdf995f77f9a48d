"""The root of faircopy's errors, and the check for bugs of our own.

An error caused from outside (a full disk, a bad setting, a damaged file) is a subclass of `FaircopyError`,
defined beside the code that raises it. Its message says what was being done, to what, why it failed and what
to do. An `invariant` that fails is a bug in faircopy; the check also runs under `python -O`.
"""

from __future__ import annotations


class FaircopyError(Exception):
    """Something outside faircopy's control went wrong; the message is fit for users."""


class InvariantViolation(AssertionError):
    """A bug in faircopy: a numbered invariant, or an assumption of the code, does not hold."""


class DoesNotFold(InvariantViolation):
    """An entry of a journal can't follow those before it. Its fold has changed nothing."""


def invariant(holds: object, what: str) -> None:
    """Raise `InvariantViolation` unless `holds` is true; `what` says what should hold."""
    if not holds:
        raise InvariantViolation(what)
