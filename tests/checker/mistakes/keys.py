"""Mistakes with the keys of joint groups."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.checker.history import KeyCommitted, Operation, Result
from tests.checker.mistakes.changes import change_one, transactions


def commit_a_key_twice(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """What two attempts have written for one key is seen."""
    seen = [each for each in transactions(history, Result.OK) if each.key is not None and each.sends]
    first, *others = chosen.sample(seen, len(seen)) if seen else (None,)
    second = next((each for each in others if first and each and each.group == first.group), None)
    if first is None or second is None:
        return None
    return [replace(each, key=first.key) if each is second else each for each in history]


def forget_a_key(history: list[Operation], chosen: random.Random) -> list[Operation] | None:
    """A key is called committed, and nothing of it is there."""
    return change_one(
        history, chosen, KeyCommitted, lambda told: replace(told, key=told.key + 10**6), lambda *_: True
    )
