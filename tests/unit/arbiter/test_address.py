"""What settings say of the arbiter: where it is, and what may stand together."""

from __future__ import annotations

import re
from typing import Any

import pytest

from faircopy.arbiter.address import ArbiterAddress, arbiter_options, check_set_name, parse_arbiter
from faircopy.settings.table import BadSetting, Settings
from faircopy.wire.address import Address

HOSTS = (Address("h1", 2379), Address("::1", 2380))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("lmdb:/var/lib/faircopy/arbiter", ArbiterAddress("lmdb", directory="/var/lib/faircopy/arbiter")),
        ("lmdb:here/a b:c", ArbiterAddress("lmdb", directory="here/a b:c")),
        ("etcd://h1:2379", ArbiterAddress("etcd", hosts=HOSTS[:1])),
        ("etcd://h1:2379,[::1]:2380", ArbiterAddress("etcd", hosts=HOSTS)),
        ("etcds://h1:2379,[::1]:2380", ArbiterAddress("etcd", hosts=HOSTS, is_tls=True)),
    ],
)
def test_an_address_is_read_and_shown_as_it_is_written(text: str, address: ArbiterAddress) -> None:
    assert parse_arbiter(text) == address
    assert str(address) == text


def test_blanks_after_commas_are_no_part_of_an_address() -> None:
    assert parse_arbiter("etcd://h1:2379, [::1]:2380").hosts == HOSTS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("zookeeper://h1:2181", "give lmdb:DIRECTORY, etcd://HOST:PORT"),
        ("h1:2379", "give lmdb:DIRECTORY, etcd://HOST:PORT"),
        ("http://h1:2379", "give lmdb:DIRECTORY, etcd://HOST:PORT"),
        ("etcd:h1:2379", "give lmdb:DIRECTORY, etcd://HOST:PORT"),
        ("lmdb", "give lmdb:DIRECTORY"),
        ("lmdb:", "has no directory"),
        ("lmdb://host/directory", "has no directory"),
        ("etcd://", "give HOST:PORT"),
        ("etcd://h1", "give HOST:PORT"),
        ("etcd://h1:2379,", "give HOST:PORT"),
        ("etcd://h1:2379/", "give HOST:PORT"),
        ("etcd://h1:99999", "give HOST:PORT"),
        ("etcd://h1:0", "nobody can connect"),
        ("etcd://0.0.0.0:2379", "nobody can connect"),
        ("etcd://h1:2379,h1:2379", "twice"),
    ],
)
def test_a_bad_address_is_told(text: str, message: str) -> None:
    with pytest.raises(BadSetting, match=message) as told:
        parse_arbiter(text)
    assert str(told.value).startswith("arbiter ")


def test_a_password_in_an_address_is_refused_and_not_shown() -> None:
    with pytest.raises(BadSetting, match=r"arbiter\.password\.file") as told:
        parse_arbiter("etcd://root:secret@h1:2379")
    assert "secret" not in str(told.value)


@pytest.mark.parametrize("name", ["orders", "a", "Orders-2.eu_west", "...", "x" * 100])
def test_names_of_sets(name: str) -> None:
    assert check_set_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "a\n", "größe", "x" * 101])
def test_what_is_no_name_of_a_set(name: str) -> None:
    with pytest.raises(BadSetting, match=r"replica\.set is"):
        check_set_name(name)


def settings(**values: Any) -> Settings:
    """Settings of a broker of a set."""
    return Settings(**{"replica_set": "orders", "arbiter": "etcds://h1:2379"} | values)


FILES = {"tls_ca_file": "ca", "tls_cert_file": "cert", "tls_key_file": "key"}
USER = {"user": "faircopy", "password_file": "password"}


@pytest.mark.parametrize("names", [{}, USER, {"tls_ca_file": "ca"}, FILES, FILES | USER])
def test_what_may_stand_together(names: dict[str, str]) -> None:
    options = arbiter_options(settings(**{f"arbiter_{name}": value for name, value in names.items()}))
    assert options is not None
    assert options.address.is_tls
    assert {name: value for name, value in options._asdict().items() if value} == {
        "address": options.address
    } | names


def test_a_broker_without_an_arbiter_leads_by_itself() -> None:
    assert arbiter_options(Settings()) is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"arbiter": ""}, "replica.set is set, and arbiter is not"),
        ({"arbiter": "", "replica_set": "", "arbiter_user": "u"}, "arbiter.user is set, and arbiter is not"),
        ({"replica_set": ""}, "replica.set is empty"),
        ({"replica_set": ".."}, "replica.set is '..'"),
        ({"arbiter": "paper"}, "arbiter begins with 'paper'"),
        ({"arbiter": "lmdb:/d", "arbiter_user": "u"}, "arbiter.user is set with arbiter lmdb:/d"),
        ({"arbiter": "etcd://h1:1", "arbiter_tls_ca_file": "ca"}, "arbiter.tls.ca.file is set without TLS"),
        ({"arbiter_tls_cert_file": "cert"}, "arbiter.tls.cert.file is set, and arbiter.tls.key.file is not"),
        ({"arbiter_tls_key_file": "key"}, "arbiter.tls.key.file is set, and arbiter.tls.cert.file is not"),
        ({"arbiter_user": "u"}, "arbiter.user is set, and arbiter.password.file is not"),
        ({"arbiter_password_file": "p"}, "arbiter.password.file is set, and arbiter.user is not"),
    ],
)
def test_what_contradicts_each_other_is_told(values: dict[str, str], message: str) -> None:
    with pytest.raises(BadSetting, match=re.escape(message)):
        arbiter_options(settings(**values))
