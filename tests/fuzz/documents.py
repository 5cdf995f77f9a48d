"""Documents with odd parts: JSON and TOML, which libraries read.

Odd values show a library's limits; odd bytes do not.
"""

from __future__ import annotations

import copy
import json
import math
from typing import Any

from tests.fuzz.choices import Choices

EDITS_MAX = 4
DEPTH_MAX = 8
NESTED_LEVELS = 2_000  # more than Python's recursion takes
LONG_DIGITS = 5_000  # more than Python makes an integer of

_NESTED, _LONG = "@nested@", "@long@"
ODD_VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 0.5, "", "0", "orders", "\ud800", "/", "x" * 300,
    [], {}, [0], [[0, 0, "0"]], {"0": 0},
    2**31, 2**63, -(2**63) - 1, 10**40, 1e300, math.inf, -math.inf, math.nan, _NESTED, _LONG,
]  # fmt: skip
ODD_TEXTS = [
    "", "0", "-1", "1_0", " 1 ", "²", "٣", "1" * LONG_DIGITS, "-" + "9" * 19, "9" * 19, "true", "1e3", "inf",
    "[::1]:0", "a:", ":1", "a:65536", "a:²", "a:" + "1" * LONG_DIGITS, "\0", "os", "x" * 300,
    ".", "..", "../x", "a/b", "x\n",
]  # fmt: skip
ODD_TOML = [
    "1", '"x"', "true", "inf", "nan", "1.5", "1979-05-27", "07:32:00", "[]", "{}", "{a = 1}",
    "[" * NESTED_LEVELS, "{a = " * NESTED_LEVELS, "1" * LONG_DIGITS, "0x" + "f" * LONG_DIGITS,
    '"""', "1_000", "-1", "'\\'", '"\\ud800"',
]  # fmt: skip


def odd_document(sound: Any, choices: Choices) -> bytes:
    """JSON with a few changes: at any place a value is replaced by an odd one, taken out, or put in."""
    document = json.loads(json.dumps(sound))
    for _ in range(EDITS_MAX):
        if choices.is_over:
            break
        document = changed(document, choices, DEPTH_MAX)
    text = json.dumps(document, separators=(",", ":"))
    text = text.replace(f'"{_NESTED}"', "[" * NESTED_LEVELS + "]" * NESTED_LEVELS)
    return text.replace(f'"{_LONG}"', "1" * LONG_DIGITS).encode()


def changed(value: Any, choices: Choices, depth: int) -> Any:
    """The value with one change in it, somewhere."""
    kind = choices.number()
    if not depth or kind % 4 == 0 or not isinstance(value, dict | list) or not value:
        return odd_value(choices)
    keys: list[Any] = sorted(value) if isinstance(value, dict) else list(range(len(value)))
    key = choices.one_of(keys)
    if kind % 16 == 1:
        del value[key]
    elif kind % 16 == 2 and isinstance(value, dict):
        value[choices.one_of(ODD_TEXTS)] = odd_value(choices)
    else:
        value[key] = changed(value[key], choices, depth - 1)
    return value


def odd_value(choices: Choices) -> Any:
    """One of the odd values, to be changed at will."""
    return copy.deepcopy(choices.one_of(ODD_VALUES))
