"""Foreign programs from the packages of Debian: unpacked into the cache, not installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from bench.systems.cache import Dependency, Unavailable, Unreachable

PACKAGES_OF = {
    "kcat": ("kcat", "librdkafka1", "libyajl2"),
    "rsyslog": ("rsyslog", "rsyslog-kafka", "libestr0", "libfastjson4", "librdkafka1"),
    "syslog-ng": (
        "syslog-ng-core", "syslog-ng-mod-rdkafka", "libivykis0", "libjson-c5", "libnet1", "libpcre3",
        "librdkafka1", "libwrap0",
    ),
}  # fmt: skip
TIMEOUT_SECONDS = 600


def debian(program: str) -> Dependency:
    """The packages of a program, in the version of this machine's Debian."""
    packages = PACKAGES_OF[program]
    properties = (("packages", " ".join(packages)),)
    return Dependency(f"debian-{program}", (), lambda directory: unpack(packages, directory), properties)


DEBIAN = {program: debian(program) for program in PACKAGES_OF}


def unpack(packages: tuple[str, ...], directory: Path) -> None:
    """Download packages and unpack them. Raises Unavailable.

    The lists of packages are fetched, too, into a directory of ours: the machine may have old ones, or none,
    and only root may write them.
    """
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise Unavailable("no apt-get and dpkg-deb on PATH to fetch it")
    lists = directory / "lists"
    (lists / "partial").mkdir(parents=True)
    options = ["-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={lists}", "-o", "Debug::NoLocking=true"]
    ensure_it_succeeds(["apt-get", *options, "update"], directory)
    ensure_it_succeeds(["apt-get", *options, "download", *packages], directory)
    shutil.rmtree(lists)
    for package in sorted(directory.glob("*.deb")):
        ensure_it_succeeds(["dpkg-deb", "-x", str(package), str(directory)], directory)


def ensure_it_succeeds(command: list[str], directory: Path) -> None:
    """Run a command there. Raises Unreachable if it fails or hangs."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, cwd=directory)
    except subprocess.TimeoutExpired:
        raise Unreachable(f"{command[0]} did not end within {TIMEOUT_SECONDS} s") from None
    if run.returncode:
        said = [line for line in run.stderr.splitlines() if line.startswith(("E:", "dpkg-deb: error"))]
        raise Unreachable(f"{command[0]} failed: {said[0] if said else 'it did not say why'}")


def libraries(directory: Path) -> str:
    """Where a program that was unpacked there finds its libraries, as LD_LIBRARY_PATH takes it."""
    folders = {str(library.parent) for library in directory.rglob("lib*.so.*")}
    return os.pathsep.join(sorted(folders))
