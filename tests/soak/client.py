"""`python -m tests.soak.client LIBRARY NAME ADDRESS HISTORY SEED`: all clients of one library, until SIGTERM.

Twice a second it prints, in JSON, how its transactions ended.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import random
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from tests.clients import adapter
from tests.soak.application import Application
from tests.soak.parent import die_with_parent
from tests.soak.plain import PlainProducer
from tests.soak.readers import Member, Reader
from tests.soak.record import Recorder
from tests.soak.stage import LIBRARIES, PLACES

ORDERS = ("red", "green")
LIBRARIES_LOGGING = ("aiokafka", "kafka")  # a line, or a hundred, for each connection that breaks
COUNT_SECONDS = 0.5
FINISH_SECONDS = 8.0
WAIT_SECONDS = 15.0  # a client that hangs is replaced: no test fails of it
EX_SOFTWARE = 70
EX_TEMPFAIL = 75


def main() -> None:
    die_with_parent()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    logging.getLogger("tests").setLevel(logging.INFO)
    for library in LIBRARIES_LOGGING:
        logging.getLogger(library).setLevel(logging.CRITICAL)
    threading.excepthook = end_all
    library, name, address, history, seed = sys.argv[1:]
    adapter.WAIT_SECONDS = WAIT_SECONDS
    client, chosen, recorder = LIBRARIES[library], random.Random(int(seed)), Recorder(Path(history))
    is_over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: is_over.set())
    work: list[Application | PlainProducer | Reader | Member] = [
        Application(
            client, address, recorder, f"{order}/{library}", chosen.choice(PLACES), chosen.getrandbits(48)
        )
        for order in ORDERS
    ]
    work.append(PlainProducer(client, address, recorder, chosen.getrandbits(48)))
    for isolation in ("read_committed", "read_uncommitted"):
        work.append(Reader(client, address, recorder, isolation, chosen.getrandbits(48)))
    work.append(Member(client, address, recorder, chosen.getrandbits(48)))
    threads = [threading.Thread(target=each.run, args=(name, is_over), daemon=True) for each in work]
    for thread in threads:
        thread.start()
    wait(recorder, is_over, threads)


def wait(recorder: Recorder, is_over: threading.Event, threads: list[threading.Thread]) -> None:
    """Wait until all have finished their work. Ends the process: threads of some libraries might not end."""
    while not is_over.wait(COUNT_SECONDS):
        say(recorder)
    deadline = time.monotonic() + FINISH_SECONDS
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))
    say(recorder)
    if not any(thread.is_alive() for thread in threads):
        os._exit(0)
    faulthandler.dump_traceback()
    os._exit(EX_TEMPFAIL)


def say(recorder: Recorder) -> None:
    print(json.dumps(recorder.ended), flush=True)


def end_all(failed: Any) -> None:
    """End the process after an unexpected error in a thread, so that no client fails silently."""
    traceback.print_exception(failed.exc_type, failed.exc_value, failed.exc_traceback)
    sys.stderr.flush()
    os._exit(EX_SOFTWARE)


if __name__ == "__main__":
    main()
