"""Formats for printing messages, with kcat's letters.

%t topic   %p partition   %o offset   %k key   %s value   %T time (ms)   %h headers
%K key length   %S value length   %R value length as i32   %% percent   \\n \\t \\r \\xNN as in C
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

from faircopy.errors import FaircopyError

_TOKEN = re.compile(r"%(.)|\\x([0-9a-fA-F]{2})|\\(.)", re.DOTALL)
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


class BadFormat(FaircopyError):
    """A format holds a letter that there is not."""


def length(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def headers(message: Any) -> bytes:
    pairs = message.headers() or []
    return b",".join(name.encode() + b"=" + (value if value is not None else b"NULL") for name, value in pairs)


LETTERS: dict[str, Callable[[Any], bytes]] = {
    "t": lambda message: message.topic().encode(),
    "p": lambda message: b"%d" % message.partition(),
    "o": lambda message: b"%d" % message.offset(),
    "k": lambda message: message.key() or b"",
    "s": lambda message: message.value() or b"",
    "T": lambda message: b"%d" % message.timestamp()[1],
    "h": headers,
    "K": lambda message: b"%d" % length(message.key()),
    "S": lambda message: b"%d" % length(message.value()),
    "R": lambda message: struct.pack(">i", length(message.value())),
    "%": lambda message: b"%",
}


def compile_format(text: str) -> Callable[[Any], bytes]:
    """A function that prints a message in this format. Raises BadFormat."""
    parts: list[Callable[[Any], bytes]] = []
    at = 0
    for token in _TOKEN.finditer(text):
        parts.append(constant(text[at : token.start()].encode()))
        parts.append(part(token))
        at = token.end()
    parts.append(constant(text[at:].encode()))
    return lambda message: b"".join(each(message) for each in parts)


def part(token: re.Match[str]) -> Callable[[Any], bytes]:
    """What one token of a format prints."""
    letter, code, escape = token.groups()
    if code is not None:
        return constant(bytes([int(code, 16)]))
    if escape is not None:
        return constant(_ESCAPES.get(escape, escape.encode()))
    if letter not in LETTERS:
        raise BadFormat(f"--format has no %{letter}; there are %{' %'.join(LETTERS)}")
    return LETTERS[letter]


def constant(data: bytes) -> Callable[[Any], bytes]:
    return lambda _message: data
