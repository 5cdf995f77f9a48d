"""The layouts of an API's messages: their notation, and its parser.

A schema is a text. It begins with the API's key, name, versions, and the version from which it is flexible
(KIP-482: compact lengths and tagged fields). Request and response list their fields in wire order; the lines
that are indented below a field are the fields of its elements:

    api 12 Example 0-4 flexible 4+
      request
        group_id      string                       in all versions
        ids           []int32                      an array of a primitive
        reason        string?    3+     = null     from version 3; may be null, which is the default
        topics        []?1+                        an array of structures; may be null from version 1
            name      string     0-2
        hint          {}         4+     tag 0      one structure, as a tagged field
            leader    int32             = -1
        cursor        {}?                          a structure, or null
            partition int32

Types: bool, int8, int16, uint16, int32, int64, float64, uuid (16 raw bytes), string, bytes, records (bytes
that are not copied when read), `[]` an array, `{}` a structure. A field without `= default` must be given to
the writer, unless the version in use does not have it. A tagged structure is None when it is not on the wire.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, Final, NamedTuple

from faircopy.errors import invariant

UUID_ZERO: Final = bytes(16)
STRUCTURE: Final = "{}"
REQUIRED: Final = object()
"""Marks a field that has no default."""

_VERSIONS = r"\d+(?:\+|-\d+)?"
_FIELD = re.compile(
    rf"(?P<indent> *)(?P<name>\w+) +(?P<array>\[\])?(?P<type>\{{\}}|[a-z]+\d*)?"
    rf"(?:(?P<null>\?)(?P<nulls>{_VERSIONS})?)?"
    rf"(?: +(?P<versions>{_VERSIONS}))?(?: +tag (?P<tag>\d+))?(?: += (?P<default>\S+))?"
)
_API = re.compile(
    rf"api (?P<key>\d+) (?P<name>\w+) (?P<versions>{_VERSIONS})(?: flexible (?P<flexible>\d+)\+)?"
)
_LITERALS: Final = {"null": None, "true": True, "false": False, '""': "", "zero": UUID_ZERO}
_EMPTY: Final = {
    "bool": False,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "uuid": UUID_ZERO,
    "records": None,
    STRUCTURE: None,
}
_NEVER = 1 << 15


class Versions(NamedTuple):
    """A range of message versions, both ends included."""

    first: int
    last: int

    def has(self, version: int) -> bool:
        """Whether a version is in the range."""
        return self.first <= version <= self.last


ALL: Final = Versions(0, _NEVER)


class Field(NamedTuple):
    """One field of a structure; if `array` is true, `type` is the type of the elements."""

    name: str
    type: str
    array: bool
    versions: Versions
    nullable: Versions | None
    tag: int | None
    default: Any
    fields: tuple[Field, ...]

    def absent_value(self) -> Any:
        """The value that a reader returns in versions without this field: the default, or an empty value."""
        if self.default is not REQUIRED:
            return list(self.default) if self.array and self.default is not None else self.default
        return [] if self.array else _EMPTY.get(self.type, 0)


class Schema:
    """The layouts of one API; `flexible_from` is greater than every version when none is flexible.

    The fields are parsed when they are first used.
    """

    def __init__(self, text: str) -> None:
        head, _, rest = text.strip().partition("\n")
        api = _API.fullmatch(head)
        invariant(api, f"not the head of an API: {head!r}")
        assert api is not None
        self.api_key = int(api["key"])
        self.name = api["name"]
        self.versions = _versions(api["versions"])
        self.flexible_from = int(api["flexible"] or _NEVER)
        self._fields = rest

    @cached_property
    def _directions(self) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
        _, request, response = re.split(r"^  (?:request|response)\n?", self._fields, flags=re.MULTILINE)
        return _fields(request), _fields(response)

    @property
    def request(self) -> tuple[Field, ...]:
        """The fields of a request."""
        return self._directions[0]

    @property
    def response(self) -> tuple[Field, ...]:
        """The fields of a response."""
        return self._directions[1]


def _fields(text: str) -> tuple[Field, ...]:
    matches = [_match(line) for line in text.splitlines()]
    fields, end = _level(matches, 0, 4)
    invariant(end == len(matches), f"indentation of {text!r}")
    return fields


def _match(line: str) -> re.Match[str]:
    match = _FIELD.fullmatch(line)
    invariant(match, f"not a field: {line!r}")
    assert match is not None
    return match


def _level(matches: list[re.Match[str]], at: int, indent: int) -> tuple[tuple[Field, ...], int]:
    """The fields from `at` on that are indented by `indent` or more, and the index after them."""
    fields = []
    while at < len(matches) and len(matches[at]["indent"]) == indent:
        head = matches[at]
        children, at = _level(matches, at + 1, indent + 4)
        fields.append(_field(head, children))
    return tuple(fields), at


def _field(match: re.Match[str], children: tuple[Field, ...]) -> Field:
    field = Field(
        name=match["name"],
        type=match["type"] or STRUCTURE,
        array=bool(match["array"]),
        versions=_versions(match["versions"]),
        nullable=_versions(match["nulls"]) if match["null"] else None,
        tag=int(match["tag"]) if match["tag"] else None,
        default=_default(match["default"]),
        fields=children,
    )
    invariant(bool(children) == (field.type == STRUCTURE), f"fields of {field.name}")
    return field


def _versions(text: str | None) -> Versions:
    if not text:
        return ALL
    first, _, last = text.rstrip("+").partition("-")
    return Versions(int(first), int(last) if last else _NEVER if text.endswith("+") else int(first))


def _default(text: str | None) -> Any:
    if text is None:
        return REQUIRED
    if text == "[]":
        return ()
    return _LITERALS[text] if text in _LITERALS else int(text)
