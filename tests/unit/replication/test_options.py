"""What settings say of replication: a secret that is one, an address that a leader can reach, and what a set
can not have yet.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from faircopy.replication.options import ensure_can_share, link_address, secret_of
from faircopy.settings.table import BadSetting, Settings
from faircopy.wire.address import Address

SET = Settings(replica_set="orders", plain_enabled=False)


def test_the_secret_is_what_the_file_has_but_for_white_space(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"0123456789abcdef\n")
    assert secret_of(replace(SET, replication_secret_file=str(file))) == b"0123456789abcdef"
    file.write_bytes(b"0123456789abcde\n\n")
    with pytest.raises(BadSetting, match="which has 15 bytes: it needs at least 16"):
        secret_of(replace(SET, replication_secret_file=str(file)))
    with pytest.raises(BadSetting, match="is empty, and replica set orders has several replicas"):
        secret_of(SET)
    with pytest.raises(BadSetting, match=r"can't be read \(No such file or directory\)"):
        secret_of(replace(SET, replication_secret_file=str(tmp_path / "none")))


def test_a_follower_waits_where_its_leader_finds_it() -> None:
    assert link_address(replace(SET, replication_listener="h1:0")) == Address("h1", 0)
    for text, why in (
        ("", "give HOST:PORT of this machine"),
        ("h1", "'h1': give HOST:PORT"),
        ("0.0.0.0:1", "no leader"),
    ):
        with pytest.raises(BadSetting, match=why):
            link_address(replace(SET, replication_listener=text))


def test_what_a_set_can_not_have_yet() -> None:
    ensure_can_share(SET)
    with pytest.raises(BadSetting, match="as yet such a set needs fsync"):
        ensure_can_share(replace(SET, durability="os"))
    with pytest.raises(BadSetting, match=r"--set plain\.enabled=false"):
        ensure_can_share(Settings(replica_set="orders"))
