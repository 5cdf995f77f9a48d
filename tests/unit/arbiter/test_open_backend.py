"""The backend that settings ask for: where it keeps the keys of a set, and what is wrong with its files."""

from __future__ import annotations

import asyncio
import math
import re
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest

from faircopy.arbiter import backends
from faircopy.arbiter.address import ArbiterOptions, parse_arbiter
from faircopy.arbiter.backend import Attempt, Backend
from faircopy.arbiter.backends import etcd_access, open_backend, read_password
from faircopy.arbiter.etcd_backend import EtcdBackend
from faircopy.settings.table import BadSetting

NONE_SUCH = "no such file"


def opened(options: ArbiterOptions, set_name: str) -> Backend:
    return open_backend(options, set_name, f"of {set_name}", asyncio.get_running_loop())


def test_two_sets_in_one_directory_do_not_see_each_other(tmp_path: Path) -> None:
    async def main() -> None:
        options = ArbiterOptions(parse_arbiter(f"lmdb:{tmp_path}/arbiter"))
        for name in ("orders", "payments"):
            backend = opened(options, name)
            assert (await backend.snapshot()).entries == {}
            lease = await backend.grant(5)
            await backend.attempt(Attempt({}, {"x": name.encode()}, frozenset({"x"}), lease))
            assert await backend.lease_seconds_left("x") == (math.inf, math.inf)
            assert [entry.value for entry in (await backend.snapshot()).entries.values()] == [name.encode()]
            await backend.close()
        assert sorted(path.name for path in (tmp_path / "arbiter").iterdir()) == ["orders", "payments"]

    asyncio.run(main())


def test_the_keys_of_a_set_in_etcd_begin_with_its_name() -> None:
    async def main() -> None:
        backend = opened(ArbiterOptions(parse_arbiter("etcd://h1:1,[::1]:2")), "orders")
        assert isinstance(backend, EtcdBackend)
        assert backend._prefix == b"/faircopy/orders/"
        assert backend._client._addresses == ["h1:1", "[::1]:2"]
        await backend.close()

    asyncio.run(main())


def test_a_directory_on_a_network_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "network_file_system", {tmp_path: "NFS"}.get)

    async def main() -> None:
        with pytest.raises(BadSetting, match=r"which is on a file system .* \(NFS\)"):
            opened(ArbiterOptions(parse_arbiter(f"lmdb:{tmp_path}")), "orders")
        assert list(tmp_path.iterdir()) == []

    asyncio.run(main())


def test_names_and_options_are_checked() -> None:
    async def main() -> None:
        address = parse_arbiter("etcd://h1:1")
        with pytest.raises(BadSetting, match=r"replica\.set is"):
            opened(ArbiterOptions(address), "../orders")
        with pytest.raises(BadSetting, match=r"arbiter\.tls\.ca\.file is set without TLS"):
            opened(ArbiterOptions(address, tls_ca_file="ca"), "orders")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("content", "password"),
    [(b"secret", "secret"), (b"secret\n", "secret"), (b"secret\r\n", "secret"), ("ä b ".encode(), "ä b ")],
)
def test_a_password_is_one_line(content: bytes, password: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    assert read_password(str(tmp_path / "file")) == password


@pytest.mark.parametrize("content", [b"", b"\n", b"secret\nmore\n", b"\xff\n"])
def test_what_is_no_password_is_told_and_not_shown(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(BadSetting, match=r"arbiter\.password\.file is .*file, which") as told:
        read_password(str(tmp_path / "file"))
    assert "secret" not in str(told.value)


def with_files(tmp_path: Path, **contents: str) -> ArbiterOptions:
    """Options with a file of each name and this content; without content, there is no such file."""
    files: dict[str, Any] = {}
    for name, content in contents.items():
        files[name] = str(tmp_path / name)
        if content != NONE_SUCH:
            (tmp_path / name).write_text(content)
    return ArbiterOptions(
        parse_arbiter("etcds://h1:1"), user="u" if "password_file" in files else "", **files
    )


@pytest.mark.parametrize(
    ("contents", "setting", "message"),
    [
        ({"password_file": NONE_SUCH}, "arbiter.password.file", "No such file"),
        ({"tls_ca_file": NONE_SUCH}, "arbiter.tls.ca.file", "No such file"),
        ({"tls_ca_file": "paper"}, "arbiter.tls.ca.file", "no certificates as PEM"),
        ({"tls_cert_file": NONE_SUCH, "tls_key_file": "k"}, "arbiter.tls.cert.file", "No such file"),
        ({"tls_cert_file": "c", "tls_key_file": NONE_SUCH}, "arbiter.tls.key.file", "No such file"),
        (
            {"tls_cert_file": "c", "tls_key_file": "k"},
            "arbiter.tls.cert.file",
            "not a certificate and its key",
        ),
    ],
)
def test_files_that_are_no_use_are_told(
    contents: dict[str, str], setting: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(BadSetting, match=f"^{re.escape(setting)} is {re.escape(str(tmp_path))}.*{message}"):
        etcd_access(with_files(tmp_path, **contents))


def test_only_with_tls_there_is_a_context_and_it_checks_names() -> None:
    assert etcd_access(ArbiterOptions(parse_arbiter("etcd://h1:1"))).tls is None
    tls = etcd_access(ArbiterOptions(parse_arbiter("etcds://h1:1"))).tls
    assert tls is not None
    assert tls.check_hostname
    assert tls.verify_mode == ssl.CERT_REQUIRED


def test_a_machine_without_the_package_for_etcd_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faircopy.arbiter.etcd_backend", None)

    async def main() -> None:
        with pytest.raises(BadSetting, match=r"with pip install '\.\[etcd\]' in a checkout"):
            opened(ArbiterOptions(parse_arbiter("etcd://h1:1")), "orders")

    asyncio.run(main())
