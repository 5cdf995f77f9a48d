"""An etcd for the tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from bench.systems.maven import Unavailable
from tests.cluster.etcd import EtcdCluster, build_etcd


@pytest.fixture(scope="session")
def can_run_etcd() -> None:
    """Skip where etcd can't be built, or fail where all tests must run."""
    try:
        build_etcd()
    except Unavailable as reason:
        if os.environ.get("FAIRCOPY_REQUIRE_ALL") == "1":
            raise
        pytest.skip(f"etcd is not available: {reason}")


@pytest.fixture(scope="session")
def etcd(can_run_etcd: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The addresses of an etcd with one member."""
    with EtcdCluster(tmp_path_factory.mktemp("etcd"), 1) as cluster:
        yield cluster.addresses
