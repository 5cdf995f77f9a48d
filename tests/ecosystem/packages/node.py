"""Foreign programs in JavaScript: their packages and a Node.js, as a lock file of ours pins them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from bench.systems.cache import Dependency, Unavailable, Unreachable

NODE = Path(__file__).parents[1] / "node"
MANIFESTS = (NODE / "package.json", NODE / "package-lock.json")
TIMEOUT_SECONDS = 600


def install(directory: Path) -> None:
    """Let npm bring what the lock file says. Raises Unavailable."""
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("no npm on PATH to fetch it")
    for manifest in MANIFESTS:
        shutil.copy(manifest, directory)
    command = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, cwd=directory)
    except subprocess.TimeoutExpired:
        raise Unreachable(f"npm did not give it within {TIMEOUT_SECONDS} s") from None
    if run.returncode:
        said = [line for line in run.stderr.splitlines() if line.startswith("npm error")]
        raise Unreachable(f"npm could not install it: {said[0] if said else 'it did not say why'}")


NODE_PACKAGES = Dependency("node-packages", MANIFESTS, install)
