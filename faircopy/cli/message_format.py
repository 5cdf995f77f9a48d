"""Formats for printing messages, with kcat's letters, and messages as JSON.

%t topic   %p partition   %o offset   %k key   %s value   %T time (ms)   %h headers
%K key length   %S value length   %R value length as i32   %% percent   \\n \\t \\r \\xNN as in C
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any

from faircopy.cli.columns import printable
from faircopy.errors import FaircopyError
from faircopy.wire.records import Headers

_TOKEN = re.compile(r"%(.)|\\x([0-9a-fA-F]{2})|\\(.)", re.DOTALL)
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


class BadFormat(FaircopyError):
    """A format has an unknown letter."""


def length(data: bytes | None) -> int:
    """The length of a key or value in bytes; -1 for none, as in Kafka."""
    return -1 if data is None else len(data)


HeadersOf = Callable[[Any], Headers | None]
"""Finds the headers of a message; None if it has been deleted meanwhile."""


def headers(pairs: Headers | None) -> bytes:
    """NAME=VALUE pairs separated by commas; a header without a value shows NULL."""
    if pairs is None:
        return b"(deleted)"
    return b",".join(
        name.encode() + b"=" + (value if value is not None else b"NULL") for name, value in pairs
    )


HEADERS = "h"
LETTERS: dict[str, Callable[[Any], bytes]] = {
    "t": lambda message: message.topic().encode(),
    "p": lambda message: b"%d" % message.partition(),
    "o": lambda message: b"%d" % message.offset(),
    "k": lambda message: message.key() or b"",
    "s": lambda message: message.value() or b"",
    "T": lambda message: b"%d" % message.timestamp()[1],
    "K": lambda message: b"%d" % length(message.key()),
    "S": lambda message: b"%d" % length(message.value()),
    "R": lambda message: struct.pack(">i", length(message.value())),
    "%": lambda message: b"%",
}


Shown = Callable[[bytes], bytes]
"""How data is shown."""


def as_it_is(data: bytes) -> bytes:
    """Show data unchanged, for programs."""
    return data


def for_terminal(data: bytes) -> bytes:
    """Data with the control characters escaped that a terminal would obey. Newlines and tabs are left."""
    text = data.decode("utf-8", "backslashreplace")
    return "".join(each if each in "\n\t" else printable(each) for each in text).encode()


def compile_format(text: str, headers_of: HeadersOf, shown: Shown = as_it_is) -> Callable[[Any], bytes]:
    """A function that formats a message, passing its data through `shown`. Raises BadFormat."""
    letters = LETTERS | {HEADERS: lambda message: headers(headers_of(message))}
    parts: list[Callable[[Any], bytes]] = []
    at = 0
    for token in _TOKEN.finditer(text):
        parts.append(constant(text[at : token.start()].encode()))
        parts.append(part(token, letters, shown))
        at = token.end()
    parts.append(constant(text[at:].encode()))
    return lambda message: b"".join(each(message) for each in parts)


def part(
    token: re.Match[str], letters: Mapping[str, Callable[[Any], bytes]], shown: Shown
) -> Callable[[Any], bytes]:
    """The function that formats one token."""
    letter, code, escape = token.groups()
    if code is not None:
        return constant(bytes([int(code, 16)]))
    if escape is not None:
        return constant(_ESCAPES.get(escape, escape.encode()))
    if letter not in letters:
        raise BadFormat(f"--format has no %{letter}; there are %{' %'.join(letters)}")
    found = letters[letter]
    return found if shown is as_it_is else lambda message: shown(found(message))


def constant(data: bytes) -> Callable[[Any], bytes]:
    """A piece of a format that is the same for each message."""
    return lambda _message: data


# -- JSON ----------------------------------------------------------------------------------------------------


def as_json_line(headers_of: HeadersOf, message: Any) -> bytes:
    """A message as a line of JSON. Bytes that are UTF-8 are text; others are base64, and the row says so."""
    pairs = headers_of(message)
    row = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp_ms": message.timestamp()[1],
        **encoded("key", message.key()),
        **encoded("value", message.value()),
        "headers": None
        if pairs is None
        else [{"name": name, **encoded("value", value)} for name, value in pairs],
    }
    return json.dumps(row).encode() + b"\n"


def encoded(name: str, data: bytes | None) -> dict[str, str | None]:
    """Bytes as fields of a JSON object: only `name` if they are text, otherwise also `name`_encoding."""
    try:
        return {name: None if data is None else data.decode()}
    except UnicodeDecodeError:
        assert data is not None
        return {name: base64.b64encode(data).decode(), f"{name}_encoding": "base64"}
