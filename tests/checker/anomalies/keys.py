"""Keys of joint groups: each takes effect once, and what is told to be committed is there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.checker.anomalies.words import listed, name_of
from tests.checker.facts import Facts

GroupKey = tuple[str | None, int]


def keys_twice(facts: Facts) -> Iterator[str]:
    """Of all attempts to write a key, at most one is ever seen."""
    for (group, key), numbers in by_key(facts).items():
        seen = [number for number in numbers if is_seen(facts, number)]
        if len(seen) > 1:
            yield f"key {key} of {group!r} shows {listed(name_of(facts, number) for number in seen)}"


def lost_keys(facts: Facts) -> Iterator[str]:
    """Once somebody was told that a key is committed, one of the attempts that asked for that is seen."""
    if not facts.is_complete:
        return
    attempts = by_key(facts)
    for told in facts.keys:
        asked = [
            number
            for number in attempts[told.group, told.key]
            if (facts.transactions[number].commit_asked or told.time + 1) <= told.time
        ]
        has_empty = any(not facts.transactions[number].sends for number in asked)
        if not has_empty and not any(is_seen(facts, number) for number in asked):
            yield (
                f"key {told.key} of {told.group!r} was said at {told.time:.6f} to be committed, and none of "
                f"{len(asked)} attempts is seen"
            )


def by_key(facts: Facts) -> dict[GroupKey, list[int]]:
    """The attempts to write each key."""
    found: dict[GroupKey, list[int]] = defaultdict(list)
    for number, transaction in enumerate(facts.transactions):
        if transaction.key is not None:
            found[transaction.group, transaction.key].append(number)
    return found


def is_seen(facts: Facts, number: int) -> bool:
    """Whether anything of a transaction was read, by anybody."""
    return any(send.value in facts.places_of for send in facts.transactions[number].sends)
