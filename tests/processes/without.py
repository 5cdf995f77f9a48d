"""`python -m tests.processes.without NAMES COMMAND ...`: the command line on a machine that lacks something.

Names are separated by commas: of modules that can't be imported (`pyarrow`), of what modules have not
(`os:sendfile`), and of directories that are not there (`/proc`). They go before anything of ours is imported,
which might not notice any more.
"""

from __future__ import annotations

import errno
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock


def take_away(name: str) -> None:
    """Let a module, an attribute of one, or a directory be missing from now on."""
    module, _, attribute = name.partition(":")
    if name.startswith("/"):
        sys.addaudithook(partial(refuse_below, Path(name)))
    elif attribute:
        delattr(import_module(module), attribute)
    else:
        mock.patch.dict(sys.modules, {module: None}).start()


def refuse_below(directory: Path, event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse to open what is below a directory."""
    if event == "open" and isinstance(arguments[0], str) and Path(arguments[0]).is_relative_to(directory):
        raise FileNotFoundError(errno.ENOENT, "there is no such directory here", arguments[0])


if __name__ == "__main__":
    missing = sys.argv.pop(1)
    for each in missing.split(","):
        take_away(each)

    from faircopy.cli.main import main

    main()
