"""`python -m tests.scenarios`: write all scripts anew, with what comes of their commands now."""

from __future__ import annotations

from tests.scenarios.kinds import HERE, SCRIPTS, play_file

for path in SCRIPTS:
    played = play_file(path)
    if played != path.read_text():
        path.write_text(played)
        print(f"changed: {path.relative_to(HERE)}")
print(f"{len(SCRIPTS)} scripts")
