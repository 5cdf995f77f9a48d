"""A broker that was not started for tests has no faults: it refuses their API, and imports none of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from faircopy.api.api_versions import SCHEMA as API_VERSIONS
from faircopy.client.connection import BrokerConnection
from faircopy.client.errors import ConnectionFailed
from faircopy.faults.orders import SCHEMA as FAULTS
from faircopy.testing import Broker
from faircopy.wire.api_keys import ApiKey
from tests.broker_process import BrokerProcess, environment

ORDER = {"order": "planned", "document": "{}"}


def advertised(address: str) -> set[int]:
    with BrokerConnection(address) as connection:
        return {each.api_key for each in connection.ask(API_VERSIONS, 0, {}).api_keys}


def test_another_broker_has_no_faults(broker: BrokerProcess) -> None:
    with BrokerConnection(broker.address) as connection, pytest.raises(ConnectionFailed, match="closed"):
        connection.ask(FAULTS, 0, ORDER)
    assert f"API {ApiKey.FAULTS:d} version 0 is not one that was advertised" in broker.log
    assert ApiKey.FAULTS not in advertised(broker.address)


def test_a_broker_for_tests_has_them_and_tells_nobody() -> None:
    with Broker() as broker:
        with BrokerConnection(broker.bootstrap_servers) as connection:
            assert connection.ask(FAULTS, 0, ORDER).document == "[]"
        assert ApiKey.FAULTS not in advertised(broker.bootstrap_servers)


def test_another_broker_imports_none_of_it() -> None:
    program = "import sys, faircopy.cli.start\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment()
    )
    parts = {name.split(".")[1] for name in done.stdout.split() if name.startswith("faircopy.")}
    assert "broker" in parts
    assert not parts & {"faults", "testing"}
    assert not {"faircopy.broker.for_tests", "faircopy.storage.disk_for_tests"} & set(done.stdout.split())
