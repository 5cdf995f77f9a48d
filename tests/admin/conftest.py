"""A broker with one topic for each module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from faircopy.wire.error_codes import ErrorCode
from tests.admin.asking import create
from tests.broker_process import BrokerProcess


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker for the tests of one module, with a topic of the name `there`."""
    directory: Path = tmp_path_factory.mktemp("admin")
    with BrokerProcess(directory, "plain.enabled=false") as process:
        assert create(process, "there").error_code == ErrorCode.NONE
        yield process
        process.ensure_no_traceback()
