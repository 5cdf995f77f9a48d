"""A scenario as text: commands, and under each what comes of it.

    # Prose, which is kept as it is.
    > a command
      one effect
      another

To play a script is to write it anew. If nothing has changed, the text is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

COMMAND = "> "
EFFECT = "  "


def play(script: str, perform: Callable[[str], Iterable[str]]) -> str:
    """The script, with what comes of its commands now."""
    lines: list[str] = []
    for line in script.splitlines():
        if line.startswith(COMMAND):
            effects = perform(line.removeprefix(COMMAND))
            lines += [line, *(EFFECT + effect for effect in effects)]
        elif not line.startswith(EFFECT):
            lines.append(line)
    return "\n".join(lines) + "\n"
