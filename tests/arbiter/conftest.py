"""An etcd for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.arbiter.etcd import EtcdCluster
from tests.fetch.etcd import ETCD
from tests.fetch.needed import needed


@pytest.fixture(scope="session")
def can_run_etcd() -> None:
    """Skip where there is no etcd, or fail where all tests must run."""
    needed(ETCD.find)


@pytest.fixture(scope="session")
def etcd(can_run_etcd: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The addresses of an etcd with one member."""
    with EtcdCluster(tmp_path_factory.mktemp("etcd"), 1).running() as cluster:
        yield cluster.addresses
