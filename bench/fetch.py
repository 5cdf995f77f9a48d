"""What a run needs from outside, fetched before anything is measured."""

from __future__ import annotations

from collections.abc import Iterable

from bench.kafka_tools.tools import KAFKA_TOOLS
from bench.profile import Profile
from bench.systems.cache import Dependency, Unavailable
from bench.systems.choice import is_kafka
from bench.systems.kafka import KAFKA


def fetch_for(profile: Profile, only: tuple[str, ...]) -> list[str]:
    """Fetch what these steps of a profile need. Returns what could not be had, and why."""
    return fetch_all(needed_by(profile, only))


def fetch_all(dependencies: Iterable[Dependency]) -> list[str]:
    """Fetch what is not in the cache yet. Returns what could not be had, and why."""
    missing = []
    for dependency in dependencies:
        try:
            dependency.fetch()
        except Unavailable as error:
            missing.append(f"{dependency.name}: {error}")
    return missing


def needed_by(profile: Profile, only: tuple[str, ...]) -> list[Dependency]:
    """What these steps of a profile need; Spark's connector is fetched by the steps that use it."""
    found = [KAFKA] if any(is_kafka(name) for name in profile.systems) else []
    if profile.tools is not None and (not only or "tools" in only):
        found.append(KAFKA_TOOLS)
    return found
