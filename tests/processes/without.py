"""`python -m tests.processes.without NAMES COMMAND ...`: the command line on a machine that lacks something.

Names are separated by commas: of modules that can't be imported (`pyarrow`), and of what modules have not
(`os:sendfile`). It goes before anything of ours is imported, which might not notice any more.
"""

from __future__ import annotations

import sys
from importlib import import_module
from unittest import mock


def take_away(name: str) -> None:
    """Let a module, or an attribute of one, be missing from now on."""
    module, _, attribute = name.partition(":")
    if attribute:
        delattr(import_module(module), attribute)
    else:
        mock.patch.dict(sys.modules, {module: None}).start()


if __name__ == "__main__":
    missing = sys.argv.pop(1)
    for each in missing.split(","):
        take_away(each)

    from faircopy.cli.main import main

    main()
