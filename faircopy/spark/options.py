"""The options of `format("faircopy")`, with the names that Spark's Kafka source and sink have. Pure.

A user who comes from `format("kafka")` changes one word: what belongs to Kafka's clients may have the prefix
`kafka.`, and what only tunes them is ignored.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from faircopy.errors import FaircopyError

OF_SPARK = {"path", "checkpointlocation", "queryname", "mergeschema"}
"""Options of Spark's own, which it hands on."""
PREFIX = "kafka."
INSECURE = {"security.protocol": "PLAINTEXT"}

Value = TypeVar("Value")


class BadOption(FaircopyError):
    """An option is missing, unknown, or has a value that can't be used."""


class Options:
    """Options by name, whatever their case, with or without `kafka.`. `known` are the names that count."""

    def __init__(self, given: Mapping[str, str], known: Iterable[str]) -> None:
        self._known = list(known)
        names = {name.lower(): name for name in self._known}
        self._values: dict[str, str] = {}
        for name, value in given.items():
            plain = name.lower().removeprefix(PREFIX)
            ensure_insecure(plain, value)
            if plain in names:
                self._values[names[plain]] = value
            elif not name.lower().startswith(PREFIX):
                self._refuse_unknown(name)

    def _refuse_unknown(self, name: str) -> None:
        if name.lower() in OF_SPARK:
            return
        close = difflib.get_close_matches(name.lower(), [known.lower() for known in self._known], n=1)
        meant = [each for each in self._known if each.lower() in close]
        hint = f": did you mean {meant[0]}?" if meant else ""
        raise BadOption(f"option {name!r} is not known{hint}; there are {', '.join(sorted(self._known))}")

    def text(self, name: str, default: str | None = None) -> str | None:
        """The value of an option."""
        return self._values.get(name, default)

    def required(self, name: str, what: str) -> str:
        """The value of an option that must be given. Raises BadOption."""
        value = self._values.get(name)
        if not value:
            raise BadOption(f"option {name!r} is missing: it is {what}")
        return value

    def number(self, name: str, default: int | None = None, *, at_least: int = 0) -> int | None:
        """The value of an option that is a whole number. Raises BadOption."""
        value = self._values.get(name)
        if value is None:
            return default
        try:
            number = int(value)
        except ValueError:
            number = at_least - 1
        if number < at_least:
            raise BadOption(f"option {name!r} is {value!r}: give a whole number from {at_least} on")
        return number

    def flag(self, name: str, *, default: bool) -> bool:
        """The value of an option that is true or false. Raises BadOption."""
        return self.choice(name, {"true": True, "false": False}, default)

    def choice(self, name: str, values: Mapping[str, Value], default: Value) -> Value:
        """The value of an option that is one of several. Raises BadOption."""
        value = self._values.get(name)
        if value is None:
            return default
        if value.lower() not in values:
            raise BadOption(f"option {name!r} is {value!r}: give one of {', '.join(values)}")
        return values[value.lower()]

    def parsed(self, name: str, parse: Callable[[str], Value]) -> Value | None:
        """The value of an option as `parse` reads it, which may raise ValueError. Raises BadOption."""
        value = self._values.get(name)
        if value is None:
            return None
        try:
            return parse(value)
        except (ValueError, TypeError, AttributeError) as error:
            raise BadOption(f"option {name!r} is {value!r}, which can't be used: {error}") from error


def ensure_insecure(name: str, value: str) -> None:
    """Raise BadOption for a kind of connection that is not spoken."""
    expected = INSECURE.get(name)
    if expected is not None and value.upper() != expected:
        raise BadOption(f"option {name!r} is {value!r}: faircopy speaks {expected} only")
