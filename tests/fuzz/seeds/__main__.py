"""`python -m tests.fuzz.seeds`: makes the valid inputs of the corpus, out of what the product itself writes.

What once failed is in the corpus, too, under a name that begins with `found-`; it is left alone.
"""

from __future__ import annotations

from tests.fuzz.campaign import CORPUS
from tests.fuzz.seeds.by_target import seeds_of
from tests.fuzz.targets import TARGETS

FOUND = "found-"


def main() -> None:
    """Write all seeds anew."""
    for target in TARGETS:
        directory = CORPUS / target
        directory.mkdir(parents=True, exist_ok=True)
        for old in directory.iterdir():
            if not old.name.startswith(FOUND):
                old.unlink()
        for name, content in seeds_of(target):
            (directory / name).write_bytes(content)


if __name__ == "__main__":
    main()
