"""How a mutant is made: it breaks one rule of faircopy, and is known by its name.

A mutant changes the product in this process while it is applied, and names the invariant that it breaks.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

Mutant = Callable[[], contextlib.AbstractContextManager[Any]]
MUTANTS: dict[str, Mutant] = {}


def mutant(make: Callable[[], Iterator[Any]]) -> Callable[[], Iterator[Any]]:
    """Register a mutant by its name."""
    MUTANTS[make.__name__] = contextlib.contextmanager(make)
    return make


def replaced(owner: Any, name: str, new: Any) -> contextlib.AbstractContextManager[Any]:
    """Put `new` in place of an attribute. It must take what the attribute takes: a TypeError is found by any
    test, and shows nothing.
    """
    old = inspect.getattr_static(owner, name)
    assert not inspect.isroutine(old) or parameters(new) in (None, parameters(old)), (owner, name)
    return mock.patch.object(owner, name, new)


def parameters(function: Any) -> list[Any] | None:
    """Of which kind each parameter is; None if the function takes any."""
    kinds = [
        each.kind for each in inspect.signature(getattr(function, "__func__", function)).parameters.values()
    ]
    return None if {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} & {*kinds} else kinds
