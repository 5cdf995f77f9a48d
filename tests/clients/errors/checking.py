"""Whether what a library is said to tell, and what is advised, is true."""

from __future__ import annotations

from faircopy.testing import Broker
from tests.clients.errors.application import Application
from tests.clients.errors.situations import SITUATIONS
from tests.clients.errors.told import TOLD, Seen
from tests.clients.errors.trial import Trial

BY_NAME = {situation.name: situation for situation in SITUATIONS}


def check(broker: Broker, application: Application, situation: str) -> None:
    """Run one case: what is told, what is in the log then, and after the remedy."""
    seen: Seen = TOLD[application.library][situation]
    trial = Trial(broker, application, BY_NAME[situation])
    try:
        assert trial.told() == seen.told
        trial.ensure_effect(seen.told)
        trial.apply(seen.remedy)
    finally:
        trial.close()
        broker.clear_faults()
