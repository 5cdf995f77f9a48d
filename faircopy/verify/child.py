"""Work that may crash the process: C libraries trust their input, and a damaged file deceives them."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
from collections.abc import Callable
from typing import Any

SECONDS_AT_MOST = 60


def in_child(work: Callable[[], Any]) -> Any | None:
    """Run `work` in a copy of this process. Returns its result, converted by way of JSON; None if the copy
    died or took too long."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        run_and_exit(work, reader, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as told:
        answer = told.read()
    _, status = os.waitpid(child, 0)
    return json.loads(answer) if status == 0 else None


def run_and_exit(work: Callable[[], Any], reader: int, writer: int) -> None:
    """The child's part. Nothing of the parent's is cleaned up here."""
    code = 1
    try:
        os.close(reader)
        # A crash is expected here: no report of it, and no waiting for ever.
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(SECONDS_AT_MOST)
        os.write(writer, json.dumps(work()).encode())
        code = 0
    finally:
        os._exit(code)
