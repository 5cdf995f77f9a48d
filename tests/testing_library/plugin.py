"""How a run of pytest gets the plugin: by its entry point, or by name where that is not installed yet."""

from __future__ import annotations

from importlib.metadata import entry_points


def arguments() -> list[str]:
    """What pytest is told, so that it has the plugin once."""
    is_installed = any(each.value == "pytest_faircopy" for each in entry_points(group="pytest11"))
    return [] if is_installed else ["-p", "pytest_faircopy"]
