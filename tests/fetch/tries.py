"""Some tries for each dependency, since registries fail at times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from bench.systems.cache import Dependency, Unavailable, Unreachable

PAUSES_SECONDS = (5.0, 20.0)
"""Between tries: there is one more than these."""


def fetch_all(
    dependencies: Iterable[Dependency],
    say: Callable[[str], None],
    pause: Callable[[float], None] = time.sleep,
) -> list[str]:
    """Fetch what is not there yet, with a line for each step. Returns the names of what could not be had."""
    missing = []
    for dependency in dependencies:
        try:
            fetch(dependency, say, pause)
        except (Unavailable, OSError) as error:
            say(f"{dependency.name}: cannot be had: {error}")
            missing.append(dependency.name)
    return missing


def fetch(dependency: Dependency, say: Callable[[str], None], pause: Callable[[float], None]) -> None:
    """Fetch one. Raises Unavailable after the last try, or at once if no other try can help; OSError."""
    if dependency.directory.is_dir():
        say(f"{dependency.name}: is there")
        return
    say(f"{dependency.name}: fetching")
    for seconds in PAUSES_SECONDS:
        try:
            dependency.fetch()
            break
        except Unreachable as error:
            say(f"{dependency.name}: {error}; another try follows in {seconds:.0f} s")
            pause(seconds)
    else:
        dependency.fetch()
    say(f"{dependency.name}: fetched")
