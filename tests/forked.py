"""Tries something in a process of its own: a fork of this one, which no other test will see.

It is the only place from which `make check` may start a process (tests/deterministic.py).
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection

CPU_SECONDS_MAX = 500  # a mutant may be caught in a loop; how busy the machine is doesn't matter
WALL_SECONDS_MAX = 3_000  # or it waits for what never comes

Trial = Callable[[], bool]


class TrialDied(Exception):
    """The process ended, or was ended, before it could say what came of the trial."""


def said_in_child(trial: Trial, name: str) -> bool:
    """What a trial says in a fork of this process; `name` is for errors. Raises TrialDied."""
    context = multiprocessing.get_context("fork")
    answer, said = context.Pipe(duplex=False)
    child = context.Process(target=say, args=(trial, said))
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        child.start()  # Python warns that other threads' locks stay locked: the child needs none of them
    said.close()
    try:
        return answer_of(name, answer)
    finally:
        child.kill()
        child.join()
        child.close()
        answer.close()


def answer_of(name: str, answer: Connection) -> bool:
    """What the child says in the end."""
    if not answer.poll(WALL_SECONDS_MAX):
        raise TrialDied(f"{name} hangs: it has said nothing for {WALL_SECONDS_MAX} s")
    try:
        found = answer.recv()
    except EOFError:
        reason = f"its process ended, perhaps after {CPU_SECONDS_MAX} s of CPU, which is the limit"
        raise TrialDied(f"{name}: {reason}") from None
    if isinstance(found, str):
        raise TrialDied(f"{name}: its trial failed: {found}")
    return bool(found)


def say(trial: Trial, said: Connection) -> None:
    """In the child: make the trial, and say what it says, or with which error it failed."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS_MAX, CPU_SECONDS_MAX))
    try:
        said.send(trial())
    except BaseException:
        said.send(traceback.format_exc())
    os._exit(0)  # what is to be done at an exit is for its parent
